"""kernel.toml: what a revision says of itself."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import Field, ValidationError, field_validator, model_validator

from contract.base import Model
from contract.devices import ARCHITECTURES, COMPILED_FOR, DeviceClass
from contract.names import Identifier, Label
from contract.operators import OperatorSchema
from contract.suite import Suite

Language = Literal["cuda", "triton", "cpp"]
_M = TypeVar("_M", bound=Model)
SUFFIXES: dict[str, tuple[str, ...]] = {"cuda": (".cu",), "triton": (".py",), "cpp": (".cpp", ".cc")}
# A reader of TOML takes time by the square of a key's dots: what is longer was not written for it.
MAX_TEXT, MAX_LINE = 256 << 10, 2000
MAX_DIM = (1 << 63) - 1  # that a database keeps
_NAMED = 20
DEFAULT_ENTRY: dict[str, str] = {"cuda": "kernelgate_run", "cpp": "kernelgate_run", "triton": "run"}


class Constraints(Model):
    """The cases that a revision supports. Keys are the operator's dimensions."""

    multiple_of: dict[str, Annotated[int, Field(ge=1, le=MAX_DIM)]] = {}
    at_most: dict[str, Annotated[int, Field(ge=0, le=MAX_DIM)]] = {}
    only: dict[str, tuple[Annotated[int, Field(ge=0, le=MAX_DIM)], ...]] = {}

    def refusal(self, dims: dict[str, int]) -> str | None:
        """Why a case of these dimensions is not supported; None where it is."""
        for name, factor in self.multiple_of.items():
            if dims[name] % factor:
                return f"{name} = {dims[name]} is not a multiple of {factor}"
        for name, limit in self.at_most.items():
            if dims[name] > limit:
                return f"{name} = {dims[name]} is over {limit}"
        for name, values in self.only.items():
            if dims[name] not in values:
                more = ", ..." if len(values) > _NAMED else ""
                return f"{name} = {dims[name]} is not one of {', '.join(map(str, values[:_NAMED]))}{more}"
        return None


class Manifest(Model):
    label: Label
    summary: str = Field(max_length=300)
    language: Language
    source: str = Field(description="the file that is compiled or imported, inside the folder")
    entry: Identifier | None = Field(default=None, description="the C symbol or Python function that is called")
    flags: tuple[str, ...] = Field(default=(), max_length=32, description="compiler flags, from an allow-list")
    shared: tuple[str, ...] = Field(default=(), description="headers beside the revisions' folders, in the bundle too")
    architectures: tuple[str, ...] = Field(
        default=(), description="what cuda and triton are compiled for; by default what the suite's classes are"
    )
    constraints: Constraints = Constraints()

    @field_validator("architectures")
    @classmethod
    def _known_architectures(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        for name in names:
            if name not in COMPILED_FOR:
                raise ValueError(f"{name} is not an architecture ({', '.join(COMPILED_FOR)})")
        if len(set(names)) != len(names):
            raise ValueError("an architecture is named twice")
        return names

    @model_validator(mode="after")
    def _source_is_source(self) -> Self:
        """Compilers take objects, assembly and linkers' scripts as well, which nobody can read."""
        if not self.source.endswith(SUFFIXES[self.language]):
            raise ValueError(f"source: {self.source[:200]!r} is no {' or '.join(SUFFIXES[self.language])} file")
        return self

    @model_validator(mode="after")
    def _cpus_have_no_architectures(self) -> Self:
        if self.language == "cpp" and self.architectures:
            raise ValueError("architectures: cpp is compiled for the CPU that it runs on")
        return self

    @property
    def entry_point(self) -> str:
        return self.entry or DEFAULT_ENTRY[self.language]

    def architectures_for(self, device_classes: tuple[DeviceClass, ...]) -> tuple[str, ...]:
        """What it is compiled for where no card is at hand: its own, else those of the suite's GPU classes."""
        wanted = self.architectures or [ARCHITECTURES[each] for each in device_classes if each in ARCHITECTURES]
        return tuple(name for name in COMPILED_FOR if name in wanted)


class ManifestError(ValueError):
    """A manifest that can't be read: the message names the file, the field, and what is allowed."""


def parse_manifest(text: str, *, file: str = "kernel.toml") -> Manifest:
    return parse_toml(Manifest, text, file)


def parse_suite(text: str, *, operator: str | None = None, file: str = "suite.toml") -> Suite:
    """`operator`: the text of the operator.py beside it, where there is one."""
    return parse_toml(Suite, text, file, {"operator_source": operator})


def check_constraints(manifest: Manifest, schema: OperatorSchema, *, file: str = "kernel.toml") -> None:
    """Raise ManifestError where a constraint names what is no dimension of the operator."""
    for kind in ("multiple_of", "at_most", "only"):
        for name in getattr(manifest.constraints, kind):
            if name not in schema.parameters:
                known = ", ".join(schema.parameters)
                raise ManifestError(f"{file}: constraints.{kind}.{name} is not a dimension of {schema.name} ({known})")


def parse_toml(model: type[_M], text: str, file: str, beside: Mapping[str, Any] = MappingProxyType({})) -> _M:
    """`beside`: fields that are no part of the text, and may not be."""
    if len(text) > MAX_TEXT or max(map(len, text.split("\n"))) > MAX_LINE:
        raise ManifestError(f"{file}: at most {MAX_TEXT} characters are allowed, and {MAX_LINE} in a line")
    try:
        data: dict[str, Any] = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # numbers without end, brackets without end
        raise ManifestError(f"{file}: {error}") from error
    if within := [name for name in beside if name in data]:
        raise ManifestError(f"{file}: {within[0]} is not a field of the file (see docs/authoring.md)")
    try:
        return model.model_validate({**data, **beside})
    except ValidationError as error:
        raise ManifestError(f"{file}: {_first_problem(model, error)}") from error


def _first_problem(model: type[Model], error: ValidationError) -> str:
    problem = error.errors()[0]
    where = ".".join(str(part) for part in problem["loc"])
    if problem["type"] == "extra_forbidden":
        allowed = ", ".join(model.model_fields) if len(problem["loc"]) == 1 else "see docs/authoring.md"
        return f"{where} is not a field (allowed: {allowed})"
    if problem["type"] == "missing":
        return f"{where} is missing"
    message = problem["msg"].removeprefix("Value error, ")
    return f"{where}: {message}" if where else message
