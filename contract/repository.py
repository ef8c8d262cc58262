""".kernelgate.toml: where a repository keeps its kernels. And which files of a folder belong to a revision."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Annotated

from pydantic import Field, StringConstraints

from contract.base import Model
from contract.manifest import parse_toml

FILE = ".kernelgate.toml"
# What belongs to a revision; editors' backups, caches and binaries beside it do not.
SOURCE_SUFFIXES = frozenset({".c", ".cc", ".cpp", ".cu", ".cuh", ".h", ".hpp", ".inl", ".py"})

RepositoryPath = Annotated[
    str,
    StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.+-]*(/[A-Za-z0-9_][A-Za-z0-9_.+-]*){0,15}$", max_length=200),
]


class RepositoryConfig(Model):
    """`kernels`: folders of kernels; each folder in them with a suite.toml is one kernel."""

    kernels: tuple[RepositoryPath, ...] = Field(default=("kernels",), min_length=1, max_length=16)


def parse_repository(text: str) -> RepositoryConfig:
    """Raises contract.manifest.ManifestError."""
    return parse_toml(RepositoryConfig, text, FILE)


def belongs_to_revision(name: str) -> bool:
    """Whether the file at `name`, relative to a revision's folder, is one of its sources."""
    path = PurePosixPath(name)
    return path.suffix in SOURCE_SUFFIXES and not any(part.startswith((".", "__")) for part in path.parts)
