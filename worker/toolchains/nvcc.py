"""Where nvcc is on this machine: a setting, PATH, a toolkit, or the PyPI wheels."""

from __future__ import annotations

import re
import shutil
import subprocess
import sysconfig
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from worker.toolchains.base import ToolchainMissing


@dataclass(frozen=True)
class Nvcc:
    """`libraries` is searched for cudart, which the wheels keep where nvcc doesn't look."""

    path: Path
    version: str
    libraries: tuple[Path, ...]


@cache
def find_nvcc(setting: str | None) -> Nvcc:
    """Raises ToolchainMissing where no candidate runs."""
    for candidate in _candidates(setting):
        version = _version(candidate)
        if version is not None:
            home = candidate.resolve().parent.parent
            beside = tuple(folder for folder in (home / "lib64", home / "lib") if folder.is_dir())
            return Nvcc(path=candidate, version=version, libraries=beside)
    tried = setting or "PATH, /usr/local/cuda and the nvidia-cuda-nvcc wheel"
    raise ToolchainMissing(f"no nvcc was found ({tried})")


def _candidates(setting: str | None) -> list[Path]:
    if setting:
        return [Path(setting)]
    on_path = shutil.which("nvcc")
    wheels = Path(sysconfig.get_path("purelib")) / "nvidia"
    return [
        *([Path(on_path)] if on_path else []),
        Path("/usr/local/cuda/bin/nvcc"),
        *sorted(wheels.glob("cu[0-9]*/bin/nvcc"), reverse=True),
    ]


def _version(path: Path) -> str | None:
    try:
        done = subprocess.run([str(path), "--version"], capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(r"V(\d+\.\d+\.\d+)", done.stdout)
    return found[1] if found else None
