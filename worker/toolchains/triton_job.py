"""What the Triton builder and its compiling process say to each other; the process alone imports torch."""

from __future__ import annotations

from pydantic import Field

from contract.base import Model
from contract.layout import TensorSpec
from contract.names import CaseId


class CompileCase(Model):
    case: CaseId
    dims: dict[str, int]
    tensors: tuple[TensorSpec, ...]


class CompileJob(Model):
    source: str
    entry: str
    architecture: str
    cases: tuple[CompileCase, ...]
    out: str


class CompiledFunction(Model):
    """`shared_bytes`: dynamic shared memory of a launch; `cubin` is a file name in the job's folder."""

    function: str = Field(max_length=65_535)
    cubin: str = Field(max_length=200)
    shared_bytes: int = Field(ge=0)
    threads: int = Field(ge=1)


class CompileResult(Model):
    functions: tuple[CompiledFunction, ...] = Field(default=(), max_length=4096, fail_fast=True)
    error: str | None = None
