"""C++ for the CPU, by g++."""

from __future__ import annotations

import subprocess
from functools import cache

from contract.statics import FunctionStatics
from worker.toolchains.base import (
    COMPILER_FILE_BYTES,
    INCLUDE,
    Built,
    Request,
    ToolchainMissing,
    check_compiled,
    check_entry,
    check_flags,
)

FLAGS = (
    (r"-O(0|1|2|3|fast)", "-O0 to -O3, -Ofast"),
    (r"-std=(c|gnu)\+\+(11|14|17|20|2b|23)", "-std=c++20 and the like"),
    (r"-ffast-math", "-ffast-math"),
    (r"-f(no-)?(unroll-loops|tree-vectorize|tree-slp-vectorize|strict-aliasing|exceptions|rtti|openmp-simd)",
     "-f[no-]unroll-loops, tree-vectorize, tree-slp-vectorize, strict-aliasing, exceptions, rtti, openmp-simd"),
    (r"-fno-(math-errno|trapping-math|signed-zeros|semantic-interposition)|-fassociative-math|-freciprocal-math",
     "-fno-math-errno, -fno-trapping-math, -fno-signed-zeros, -fassociative-math, -freciprocal-math"),
    (r"-ffp-contract=(fast|on|off)", "-ffp-contract="),
    (r"-m(no-)?(avx|avx2|fma|f16c|avx512[a-z0-9]+|sse4\.[12])", "-mavx2, -mfma, -mavx512f and the like"),
    (r"-mprefer-vector-width=(128|256|512)", "-mprefer-vector-width="),
    (r"-falign-(loops|functions)=\d{1,4}", "-falign-loops=, -falign-functions="),
    (r"-W[a-z][a-z-]*", "-W..."),
    (r"-D[A-Za-z_]\w*(=\w*)?", "-DNAME=VALUE"),
)  # fmt: skip
_ALWAYS = ("-O3", "-march=native", "-std=c++20", "-fPIC", "-shared", "-pthread", "-fdiagnostics-color=never")
# Names that the compiler makes up must not change from build to build: the artifact's digest is compared.
_REPRODUCIBLE = ("-frandom-seed=kernelgate", "-Wl,--build-id=none")


class CppToolchain:
    def __init__(self, *, compiler: str) -> None:
        self._compiler = compiler

    def versions(self) -> dict[str, str]:
        return {"g++": _version(self._compiler)}

    def build(self, request: Request) -> Built:
        manifest = request.manifest
        check_flags(manifest.flags, allowed=FLAGS, language="cpp")
        library = request.out / "kernel.so"
        argv = [self._compiler, *_ALWAYS, *manifest.flags, *_REPRODUCIBLE, f"-I{INCLUDE}", "-I."]
        done = request.run(
            [*argv, manifest.source, "-o", str(library)],
            cwd=request.bundle,
            limit_s=request.limit_s,
            memory_bytes=request.memory_bytes,
            file_bytes=COMPILER_FILE_BYTES,
            writable=(request.out, request.scratch),
        )
        log = check_compiled(done, request=request, compiler="g++")
        elf = check_entry(library, entry=manifest.entry_point, source=manifest.source)
        return Built(
            language="cpp",
            entry=manifest.entry_point,
            library=library.name,
            # Of the whole library: which of its functions is the kernel nobody knows, and their sizes the source says.
            statics=(FunctionStatics(function=manifest.entry_point, architecture="x86-64", code_bytes=elf.code_bytes),),
            toolchain=self.versions(),
            log=log,
        )


@cache
def _version(compiler: str) -> str:
    """Its version, and what -march=native means here: another CPU's build is another build."""
    try:
        first = subprocess.run([compiler, "--version"], capture_output=True, text=True, timeout=30, check=True)
        native = subprocess.run(
            [compiler, "-march=native", "-Q", "--help=target"], capture_output=True, text=True, timeout=30, check=True
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise ToolchainMissing(f"{compiler} can't be run here: {error}") from error
    march = next((line.split()[-1] for line in native.stdout.splitlines() if line.strip().startswith("-march=")), "")
    return f"{first.stdout.splitlines()[0]} {march}".strip()
