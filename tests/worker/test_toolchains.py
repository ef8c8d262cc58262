import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from contract.bundle import Files, check
from contract.outcomes import OUTCOME_OF, Outcome, Reason
from tests.worker.jobs import bundle, suite
from tests.worker.nvdisasm import counts_by_function
from worker.inspect import Elf
from worker.room import open_room
from worker.sandbox import NoSandbox
from worker.settings import WorkerSettings
from worker.toolchains import BuildFailed, Built, Request, ToolchainMissing, toolchain_for
from worker.toolchains.cpp import CppToolchain
from worker.toolchains.nvcc import find_nvcc


def build(files: Files, folder: Path, *, architecture: str | None = None, cases=(), **more) -> tuple[Built, Path]:
    manifest = check(files)
    out = folder / "out"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    with open_room(folder, sandbox=NoSandbox(), check=lambda: None) as room:
        request = {
            "manifest": manifest,
            "suite": suite("fp16" if manifest.language != "cpp" else "fp32"),
            "bundle": room.write(files, "bundle"),
            "out": out,
            "scratch": room.folder("scratch"),
            "architecture": architecture,
            "compile_cases": cases,
            "limit_s": 60.0,
            "memory_bytes": 8 << 30,
            "run": room.run,
        }
        return toolchain_for(manifest.language, WorkerSettings()).build(Request(**(request | more))), out


def failure(files: Files, folder: Path, **more) -> BuildFailed:
    with pytest.raises(BuildFailed) as caught:
        build(files, folder, **more)
    assert OUTCOME_OF[caught.value.reason] is Outcome.BUILD_FAILED
    return caught.value


# ------------------------------------------------------------------------------------------------------------ cpp


def test_cpp_builds_a_library_with_its_entry(tmp_path):
    built, out = build(bundle("gemm_cpu"), tmp_path)
    assert built.library is not None
    names = {symbol.name for symbol in Elf((out / built.library).read_bytes()).symbols(".dynsym")}
    assert "kernelgate_run" in names
    assert built.toolchain["g++"]


@pytest.mark.parametrize("hidden", ["", "static ", '__attribute__((section("elsewhere"))) '])
def test_the_code_of_a_library_is_all_of_it(tmp_path, hidden):
    """A function that isn't exported, one in a section of its own, and a size that the source makes up."""
    more = f'{hidden}__attribute__((noinline, used)) int more(int x) {{ asm volatile(".zero 5000"); return x; }}\n'
    lie = 'asm(".size kernelgate_run, 0x7fffffffffffffff");\n'
    source = bundle("gemm_cpu")["kernel.cpp"].decode()
    sizes = []
    for name, text in (("plain", source), ("more", source + more + lie)):
        (tmp_path / name).mkdir()
        built, _ = build(bundle("gemm_cpu", kernel_cpp=text), tmp_path / name)
        sizes += [function.code_bytes for function in built.statics]
    assert 5000 < sizes[1] - sizes[0] < 6000


def test_two_builds_in_two_folders_are_the_same_library(tmp_path):
    files = bundle(
        "gemm_cpu", kernel_cpp=bundle("gemm_cpu")["kernel.cpp"].decode() + "\nnamespace { int x; } int* y = &x;"
    )
    digests = set()
    for name in ("here", "there"):
        built, out = build(files, tmp_path / name)
        digests.add(hashlib.sha256((out / built.library).read_bytes()).hexdigest())
    assert len(digests) == 1


def test_a_compile_error_shows_the_bundles_own_path_and_nothing_of_the_machine(tmp_path):
    error = failure(bundle("gemm_cpu", kernel_cpp="int kernelgate_run( { \x1b[31m"), tmp_path)
    assert error.reason is Reason.COMPILE_ERROR
    assert "kernel.cpp:1:" in str(error)
    assert str(tmp_path) not in str(error)
    assert "\x1b" not in str(error)


def test_endless_compiler_messages_are_capped(tmp_path):
    error = failure(bundle("gemm_cpu", kernel_cpp="int a = nothing;\n" * 400), tmp_path)
    assert len(str(error)) <= 8000
    assert "left out" in str(error)


def test_a_missing_entry_is_named_with_what_to_write(tmp_path):
    error = failure(bundle("gemm_cpu", kernel_cpp="int kernelgate_run(int) { return 0; }"), tmp_path)
    assert error.reason is Reason.ENTRY_MISSING
    assert 'extern "C"' in str(error)


def test_an_entry_of_another_name_is_looked_for(tmp_path):
    files = bundle("gemm_cpu", manifest='entry = "my_gemm"\n', kernel_cpp='extern "C" int my_gemm(int) { return 0; }')
    assert build(files, tmp_path)[0].entry == "my_gemm"


@pytest.mark.parametrize(
    ("name", "flag"),
    [
        ("gemm_cpu", "-fplugin=evil.so"),
        ("gemm_cpu", "-I/etc"),
        ("gemm_cpu", "-O3 -include /etc/passwd"),
        ("gemm_cpu", "-DX=$(id)"),
        ("gemm_cpu", "-Wl,-rpath=/tmp"),
        ("gemm_cpu", "-Wa,--listing"),
        ("gemm_cpu", "@file"),
        ("copy_cuda", "-ccbin=./gcc"),
        ("copy_cuda", "-Xcompiler=-fplugin=evil.so"),
        ("copy_cuda", "--options-file=x"),
        ("copy_triton", "-O3"),
    ],
)
def test_a_flag_outside_the_allow_list_is_named(tmp_path, name, flag):
    error = failure(bundle(name, manifest=f"flags = ['{flag}']\n"), tmp_path, architecture="sm_90a")
    assert error.reason is Reason.FLAG_NOT_ALLOWED
    assert flag in str(error)
    assert "allowed: " in str(error)


def test_allowed_flags_reach_the_compiler(tmp_path):
    source = 'extern "C" int kernelgate_run(const void*) { static_assert(KG_TILE == 32); return 0; }'
    build(bundle("gemm_cpu", manifest='flags = ["-DKG_TILE=32", "-O2"]\n', kernel_cpp=source), tmp_path)


def test_a_compilation_that_takes_too_long_is_ended(tmp_path):
    source = """
    template <int n, int m> struct F { static constexpr long v = F<n - 1, m>::v + F<n - 1, m + 1>::v; };
    template <int m> struct F<0, m> { static constexpr long v = m; };
    extern "C" int kernelgate_run(const void*) { return F<850, 0>::v; }
    """
    error = failure(bundle("gemm_cpu", kernel_cpp=source), tmp_path, limit_s=0.5)
    assert error.reason is Reason.COMPILE_TIMED_OUT
    assert "0.5 s" in str(error)


def test_a_missing_compiler_is_no_fault_of_the_submission(tmp_path):
    with pytest.raises(ToolchainMissing, match="no-such-g"):
        CppToolchain(compiler=str(tmp_path / "no-such-g++")).versions()
    with pytest.raises(ToolchainMissing, match="no nvcc"):
        find_nvcc(str(tmp_path / "nvcc"))


# ----------------------------------------------------------------------------------------------------------- cuda


@pytest.mark.parametrize("arch", ["sm_89", "sm_90a", "sm_103a"])
def test_cuda_keeps_the_cubin_that_the_library_embeds(tmp_path, arch):
    built, out = build(bundle("copy_cuda"), tmp_path, architecture=arch)
    ((digest, name),) = built.cubins.items()
    code = (out / name).read_bytes()
    assert hashlib.sha256(code).hexdigest() == digest
    assert code in (out / built.library).read_bytes()
    (function,) = built.statics
    assert (function.architecture, function.static_shared_bytes, function.spill_store_bytes) == (arch, 512, 0)
    assert function.dynamic_shared_bytes is None
    assert {name for name, count in function.instructions if count} == {"barrier"}
    assert 0 < function.registers < 64
    assert function.code_bytes > 0


def test_two_cuda_builds_in_two_folders_differ_in_made_up_names_alone(tmp_path):
    codes = set()
    for name in ("here", "there"):
        built, out = build(bundle("copy_cuda"), tmp_path / name, architecture="sm_89")
        (cubin,) = built.cubins.values()
        (made_up,) = built.made_up_names
        codes.add((out / cubin).read_bytes().replace(made_up.encode(), b""))
    assert len(codes) == 1


def test_a_cuda_compile_error_shows_the_bundles_own_path(tmp_path):
    error = failure(
        bundle("copy_cuda", kernel_cu="__global__ void f() { nothing(); }"), tmp_path, architecture="sm_90a"
    )
    assert error.reason is Reason.COMPILE_ERROR
    assert "kernel.cu(1)" in str(error)
    assert str(tmp_path) not in str(error)


def test_more_static_shared_memory_than_there_is_is_refused(tmp_path):
    source = bundle("copy_cuda")["kernel.cu"].decode().replace("tile[256]", "tile[256000]")
    error = failure(bundle("copy_cuda", kernel_cu=source), tmp_path, architecture="sm_90a")
    assert error.reason in (Reason.COMPILE_ERROR, Reason.ARCHITECTURE_UNSUPPORTED)
    assert "shared" in str(error)


# --------------------------------------------------------------------------------------------------------- triton


def test_triton_with_a_card_is_only_checked(tmp_path):
    built, _ = build(bundle("copy_triton"), tmp_path, architecture="sm_90a")
    assert (built.source, built.cubins) == ("kernel.py", {})


def test_triton_that_is_not_python_is_a_compile_error_with_its_line(tmp_path):
    error = failure(bundle("copy_triton", kernel_py="import triton\ndef run(:\n"), tmp_path, architecture="sm_90a")
    assert error.reason is Reason.COMPILE_ERROR
    assert "kernel.py:2" in str(error)


def test_triton_without_its_launcher_lacks_an_entry(tmp_path):
    error = failure(bundle("copy_triton", kernel_py="def launch(): ..."), tmp_path, architecture="sm_90a")
    assert error.reason is Reason.ENTRY_MISSING
    assert "run(inputs, outputs, params, workspace)" in str(error)


def test_checking_triton_source_runs_none_of_it(tmp_path):
    marker = tmp_path / "ran"
    files = bundle("copy_triton", kernel_py=f"open({str(marker)!r}, 'w')\ndef run(*_): ...\n")
    build(files, tmp_path, architecture="sm_90a")
    assert not marker.exists()


@pytest.mark.parametrize("arch", ["sm_89", "sm_103a"])
def test_triton_compiles_for_a_card_that_is_not_there(tmp_path, arch):
    built, out = build(bundle("copy_triton"), tmp_path, architecture=arch, cases=suite("fp16").cases)
    assert len(built.cubins) >= 1
    for digest, name in built.cubins.items():
        assert hashlib.sha256((out / name).read_bytes()).hexdigest() == digest
    assert {s.function for s in built.statics} == {"copy"}
    assert all(s.registers > 0 and s.spill_store_bytes == 0 and s.architecture == arch for s in built.statics)


@pytest.mark.parametrize(("arch", "products"), [("sm_89", "mma"), ("sm_90a", "wgmma"), ("sm_103a", "tcgen05_mma")])
def test_tritons_instructions_are_counted_for_each_generation_of_tensor_cores(tmp_path, arch, products):
    cases = suite("fp16", 1024).cases
    built, out = build(bundle("gemm_descriptors"), tmp_path, architecture=arch, cases=cases)
    (function,) = built.statics
    counted = {name: count for name, count in function.instructions if count}
    (cubin,) = built.cubins.values()
    assert counts_by_function(out / cubin) == {"product": counted}
    copies = {"async_copy"} if arch == "sm_89" else {"bulk_copy"}
    assert set(counted) == {products, "special_function", "barrier"} | copies
    assert (function.static_shared_bytes, function.spill_store_bytes) == (0, 0)
    assert function.dynamic_shared_bytes >= 65_536


def test_triton_code_that_needs_more_shared_memory_than_the_card_has_is_refused(tmp_path):
    source = """
import triton
import triton.language as tl

@triton.jit
def product(a, b, c, N: tl.constexpr, K: tl.constexpr):
    at = tl.arange(0, N)
    acc = tl.zeros((N, N), tl.float32)
    for k in range(0, 1024, K):
        ks = k + tl.arange(0, K)
        acc += tl.dot(tl.load(a + at[:, None] * 1024 + ks[None, :]), tl.load(b + ks[:, None] * N + at[None, :]))
    tl.store(c + at[:, None] * N + at[None, :], acc.to(tl.float16))

def run(inputs, outputs, params, workspace):
    product[(1,)](*inputs, *outputs, N=128, K=128, num_stages=4, num_warps=8)
"""
    error = failure(
        bundle("copy_triton", kernel_py=source), tmp_path, architecture="sm_89", cases=suite("fp16", 128).cases
    )
    assert error.reason is Reason.ARCHITECTURE_UNSUPPORTED
    assert "bytes of shared memory; sm_89 has 101376 a block" in str(error)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("def run(inputs, outputs, params, workspace): raise ValueError('no luck')", "no luck"),
        ("def run(inputs, outputs, params, workspace): ...", "launched no Triton kernel"),
        ("import os\ndef run(inputs, outputs, params, workspace): os._exit(0)", "ended with 0"),
        ("import os\ndef run(inputs, outputs, params, workspace): os.kill(os.getpid(), 11)", "by signal 11"),
    ],
)
def test_a_triton_launcher_that_fails_is_a_compile_error(tmp_path, source, words):
    error = failure(bundle("copy_triton", kernel_py=source), tmp_path, architecture="sm_90a", cases=suite("fp16").cases)
    assert error.reason is Reason.COMPILE_ERROR
    assert words in str(error)
    assert str(tmp_path) not in str(error)


def test_the_long_lived_worker_imports_no_gpu_library():
    source = "import sys, worker.app; print(sorted({'torch', 'triton', 'cupy', 'cuda'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
