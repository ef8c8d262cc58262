"""Triton: checked here without being imported. With a card it is compiled while it is recorded; without one, here."""

from __future__ import annotations

import ast
import hashlib
import importlib.metadata
import sys
from pathlib import Path

from contract.outcomes import Reason
from contract.report import MAX_MESSAGE
from contract.statics import FunctionStatics
from worker.inspect import ElfError, excess, statics_of_cubin
from worker.operators import tensors_of
from worker.toolchains.base import BuildFailed, Built, Request, ToolchainMissing, check_flags, shown
from worker.toolchains.triton_job import CompileCase, CompileJob, CompileResult

_RESULT_BYTES = 4 << 20
_CUBINS_BYTES = 256 << 20  # of all functions together


class TritonToolchain:
    def versions(self) -> dict[str, str]:
        try:
            return {name: importlib.metadata.version(name) for name in ("triton", "torch")}
        except importlib.metadata.PackageNotFoundError as error:
            raise ToolchainMissing(f"{error.name} is not installed on this node") from error

    def build(self, request: Request) -> Built:
        manifest = request.manifest
        check_flags(manifest.flags, allowed=(), language="triton")
        if request.architecture is None:
            raise BuildFailed(Reason.ARCHITECTURE_UNSUPPORTED, "a triton revision can't run on a CPU")
        check_source(request.bundle / manifest.source, entry=manifest.entry_point, shown_as=manifest.source)
        built = Built(language="triton", entry=manifest.entry_point, source=manifest.source, toolchain=self.versions())
        return _compile(request, built) if request.compile_cases else built


def check_source(file: Path, *, entry: str, shown_as: str) -> None:
    """Raises BuildFailed where the file isn't Python or doesn't define the function `entry`."""
    try:
        tree = ast.parse(file.read_bytes(), filename=shown_as)
        compile(tree, shown_as, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", None)
        where = f"{shown_as}:{line}" if line else shown_as
        raise BuildFailed(Reason.COMPILE_ERROR, f"{where}: {getattr(error, 'msg', None) or error}") from error
    if not any(isinstance(node, ast.FunctionDef) and node.name == entry for node in tree.body):
        raise BuildFailed(
            Reason.ENTRY_MISSING, f"{shown_as} defines no function {entry}(inputs, outputs, params, workspace)"
        )


def _compile(request: Request, built: Built) -> Built:
    """In a folder of its own: where the submission's code writes, nothing of this process is written."""
    assert request.architecture is not None  # noqa: S101 - `build` has refused it
    made = request.scratch / "made"
    made.mkdir()
    job = CompileJob(
        source=str(request.bundle / request.manifest.source),
        entry=built.entry,
        architecture=request.architecture,
        cases=tuple(
            CompileCase(case=case.id, dims=case.dims, tensors=tensors_of(request.suite, case))
            for case in request.compile_cases
        ),
        out=str(made),
    )
    done = request.run(
        [sys.executable, "-m", "worker.toolchains.triton_compile"],
        cwd=request.scratch,
        limit_s=request.limit_s,
        stdin=job.model_dump_json().encode(),
        readable=(request.bundle,),
        writable=(made,),
    )
    text = shown(done.stderr, request=request)
    if done.timed_out:
        raise BuildFailed(
            Reason.COMPILE_TIMED_OUT, f"Triton was ended after {request.limit_s:g} s\n{text}"[:MAX_MESSAGE]
        )
    result = _result(made / "compiled.json")
    if result is None:
        ended = f"by signal {-done.returncode}" if done.returncode < 0 else f"with {done.returncode}"
        raise BuildFailed(Reason.COMPILE_ERROR, f"Triton's compiler ended {ended}\n{text}"[:MAX_MESSAGE])
    if result.error is not None:
        raise BuildFailed(Reason.COMPILE_ERROR, shown(result.error.encode(), request=request))
    return _inspected(request, built, result, made=made, log=text)


def _result(file: Path) -> CompileResult | None:
    try:
        return CompileResult.model_validate_json(_content(file, most=_RESULT_BYTES))
    except (OSError, ValueError):
        return None


def _inspected(request: Request, built: Built, result: CompileResult, *, made: Path, log: str) -> Built:
    """The child ran the submission's code: its files are read as anyone's."""
    cubins: dict[str, str] = {}
    statics: list[FunctionStatics] = []
    left = _CUBINS_BYTES
    for function in {function.cubin: function for function in result.functions}.values():
        code = _code(made, function.cubin, most=left)
        left -= len(code)
        digest = hashlib.sha256(code).hexdigest()
        if digest in cubins:
            continue
        try:
            found = statics_of_cubin(code, architecture=request.architecture or "")
        except ElfError as error:
            raise BuildFailed(Reason.COMPILE_ERROR, f"{function.cubin}: {error}") from error
        cubins[digest] = f"{digest}.cubin"
        (request.out / cubins[digest]).write_bytes(code)
        for entry in found:
            whole = entry.model_copy(update={"dynamic_shared_bytes": function.shared_bytes})
            if (problem := excess(whole, threads=function.threads)) is not None:
                raise BuildFailed(Reason.ARCHITECTURE_UNSUPPORTED, problem)
            statics.append(whole)
    if not cubins:
        raise BuildFailed(Reason.COMPILE_ERROR, f"{built.entry} launched no Triton kernel")
    return built.model_copy(update={"cubins": cubins, "statics": tuple(statics), "log": log})


def _code(made: Path, name: str, *, most: int) -> bytes:
    file = made / name
    try:
        if file.parent == made:
            return _content(file, most=most)
    except (OSError, ValueError):
        pass
    raise BuildFailed(Reason.COMPILE_ERROR, f"{name[:200]!r} is not a cubin of this build, or one of too many bytes")


def _content(file: Path, *, most: int) -> bytes:
    if file.is_symlink() or not file.is_file() or file.stat().st_size > most:
        raise ValueError(f"{file.name} is no plain file of at most {most} bytes")
    return file.read_bytes()
