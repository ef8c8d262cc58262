"""CUDA C++, by nvcc: a shared library to record from, and the very cubins that are embedded in it."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

from contract.outcomes import Reason
from contract.report import MAX_MESSAGE
from contract.statics import FunctionStatics
from worker.inspect import ElfError, combine, excess, excess_in_log, statics_of_cubin, statics_of_log
from worker.toolchains.base import (
    COMPILER_FILE_BYTES,
    INCLUDE,
    BuildFailed,
    Built,
    Request,
    check_compiled,
    check_entry,
    check_flags,
)
from worker.toolchains.cpp import CppToolchain
from worker.toolchains.nvcc import find_nvcc

FLAGS = (
    (r"-O[0-3]", "-O0 to -O3"),
    (r"-std=c\+\+(14|17|20)", "-std=c++14, c++17, c++20"),
    (r"--?use_fast_math", "--use_fast_math"),
    (r"--?maxrregcount=\d{1,3}", "--maxrregcount="),
    (r"--?(fmad|ftz|prec-div|prec-sqrt)=(true|false)", "--fmad=, --ftz=, --prec-div=, --prec-sqrt="),
    (r"--?(extra-device-vectorization|restrict|expt-relaxed-constexpr|expt-extended-lambda|extended-lambda)",
     "--extra-device-vectorization, --restrict, --expt-relaxed-constexpr, --extended-lambda"),
    (r"--?(lineinfo|generate-line-info)", "--lineinfo"),
    (r"-D[A-Za-z_]\w*(=\w*)?", "-DNAME=VALUE"),
)  # fmt: skip
_ALWAYS = ("-O3", "-std=c++17", "--shared", "-Xcompiler=-fPIC", "-cudart=static", "-Xptxas=-v", "--no-compress")


class CudaToolchain:
    def __init__(self, *, nvcc: str | None, host_compiler: str) -> None:
        self._setting = nvcc
        self._host = CppToolchain(compiler=host_compiler)
        self._host_compiler = host_compiler

    def versions(self) -> dict[str, str]:
        return {"nvcc": find_nvcc(self._setting).version, **self._host.versions()}

    def build(self, request: Request) -> Built:
        manifest, architecture = request.manifest, request.architecture
        if architecture is None:
            raise BuildFailed(Reason.ARCHITECTURE_UNSUPPORTED, "a cuda revision can't run on a CPU")
        check_flags(manifest.flags, allowed=FLAGS, language="cuda")
        nvcc = find_nvcc(self._setting)
        library = request.out / "kernel.so"
        # --keep: the intermediate cubin is, byte for byte, what goes into the library (checked below).
        kept = request.scratch / "kept"
        kept.mkdir()
        virtual = architecture.replace("sm_", "compute_")
        argv = [
            str(nvcc.path), *_ALWAYS, f"-ccbin={self._host_compiler}", f"-gencode=arch={virtual},code={architecture}",
            *manifest.flags, f"-I{INCLUDE}", "-I.", *(f"-L{folder}" for folder in nvcc.libraries),
            "--keep", f"--keep-dir={kept}", manifest.source, "-o", str(library),
        ]  # fmt: skip
        done = request.run(
            argv,
            cwd=request.bundle,
            limit_s=request.limit_s,
            memory_bytes=request.memory_bytes,
            file_bytes=COMPILER_FILE_BYTES,
            writable=(request.out, request.scratch),
        )
        said = (done.stderr + b"\n" + done.stdout).decode(errors="replace")
        if done.returncode and (problem := excess_in_log(said, architecture=architecture)) is not None:
            raise BuildFailed(Reason.ARCHITECTURE_UNSUPPORTED, problem[:MAX_MESSAGE])
        log = check_compiled(done, request=request, compiler="nvcc")
        check_entry(library, entry=manifest.entry_point, source=manifest.source)
        cubins = _collect(kept, library=library, out=request.out)
        statics = combine(
            _statics(cubins, request.out, architecture), statics_of_log(done.stderr.decode(errors="replace"))
        )
        for function in statics:
            if (problem := excess(function)) is not None:
                raise BuildFailed(Reason.ARCHITECTURE_UNSUPPORTED, problem)
        return Built(
            language="cuda",
            entry=manifest.entry_point,
            library=library.name,
            cubins=cubins,
            made_up_names=_made_up_names(kept),
            statics=statics,
            toolchain=self.versions(),
            log=log,
        )


def _collect(kept: Path, *, library: Path, out: Path) -> dict[str, str]:
    """The cubins that the library embeds, by digest. (nvlink's, for device linking that isn't used, has no code.)"""
    embedded = library.read_bytes()
    cubins = {}
    for file in sorted(kept.glob("*.cubin")):
        code = file.read_bytes()
        if file.name.endswith("_dlink.cubin"):
            continue
        if code not in embedded:
            raise BuildFailed(Reason.COMPILE_ERROR, f"{file.name} is not what nvcc put into the library")
        digest = hashlib.sha256(code).hexdigest()
        cubins[digest] = f"{digest}.cubin"
        shutil.copyfile(file, out / cubins[digest])
    return cubins


def _made_up_names(kept: Path) -> tuple[str, ...]:
    """What nvcc puts into the names of static functions: a hash of the folder that it was called in."""
    names = (file.read_text(errors="replace").strip() for file in sorted(kept.glob("*.module_id")))
    return tuple(name for name in names if 8 < len(name) < 300)


def _statics(cubins: dict[str, str], folder: Path, architecture: str) -> tuple[FunctionStatics, ...]:
    found: list[FunctionStatics] = []
    for name in cubins.values():
        try:
            found += statics_of_cubin((folder / name).read_bytes(), architecture=architecture)
        except ElfError as error:
            raise BuildFailed(Reason.COMPILE_ERROR, f"a cubin can't be read: {error}") from error
    return tuple(found)
