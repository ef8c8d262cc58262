import contextlib
import random
import struct
import subprocess
from pathlib import Path

import pytest

from contract.statics import FunctionStatics
from tests.worker.jobs import FIXTURES
from worker.inspect import Elf, ElfError, combine, excess, statics_of_cubin, statics_of_log
from worker.toolchains.nvcc import find_nvcc

ARCHITECTURES = ("sm_89", "sm_90a", "sm_103a")
MORE = {"code_bytes", "instructions"}  # than the log says


@pytest.fixture(scope="module", params=ARCHITECTURES)
def compiled(request, tmp_path_factory) -> tuple[str, bytes, str]:
    """(architecture, cubin, what ptxas said)"""
    arch, out = request.param, tmp_path_factory.mktemp("cubin") / "spills.cubin"
    virtual = arch.replace("sm_", "compute_")
    argv = [find_nvcc(None).path, "-O3", f"-gencode=arch={virtual},code={arch}", "--cubin", "-Xptxas=-v", "-o", out]
    done = subprocess.run([*argv, FIXTURES / "spills.cu"], capture_output=True, text=True, check=True)
    return arch, out.read_bytes(), done.stderr


def test_the_cubin_says_the_same_as_the_compiler(compiled):
    arch, cubin, log = compiled
    from_code = {s.function: s for s in statics_of_cubin(cubin, architecture=arch)}
    from_log = {s.function: s for s in statics_of_log(log)}
    assert set(from_code) == set(from_log) == {"reversed", "spilled"}
    for name, statics in from_log.items():
        assert from_code[name].model_dump(exclude=MORE) == statics.model_dump(exclude=MORE)
        assert from_code[name].code_bytes > 0


def test_spills_registers_and_static_shared_memory_are_found(compiled):
    arch, cubin, _ = compiled
    found = {s.function: s for s in statics_of_cubin(cubin, architecture=arch)}
    assert found["reversed"].static_shared_bytes == 1024
    assert found["reversed"].spill_store_bytes == 0
    assert found["spilled"].registers == 64
    assert found["spilled"].spill_store_bytes > 0
    assert found["spilled"].spill_load_bytes > 0
    assert found["spilled"].stack_bytes > 0


def test_a_damaged_cubin_is_an_error_or_a_result_and_never_anything_else(compiled):
    arch, cubin, _ = compiled
    draw = random.Random(1)
    for _ in range(300):
        damaged = bytearray(cubin[: draw.randrange(len(cubin))] if draw.random() < 0.3 else cubin)
        for _ in range(draw.randrange(1, 40)):
            if damaged:
                damaged[draw.randrange(len(damaged))] = draw.randrange(256)
        with contextlib.suppress(ElfError):
            statics_of_cubin(bytes(damaged), architecture=arch)


def test_functions_that_all_claim_the_same_code_are_not_read_one_after_the_other(compiled):
    arch, cubin, _ = compiled
    elf = Elf(cubin)
    table = next(section for section in elf.sections if section.type == 2)
    whole = bytearray(cubin)
    for place, symbol in enumerate(elf.symbols(".symtab")):
        if symbol.is_defined_function:
            struct.pack_into("<Q", whole, table.offset + 24 * place + 16, len(cubin) - 1000)
    with pytest.raises(ElfError, match="larger than the file"):
        statics_of_cubin(bytes(whole), architecture=arch)


@pytest.mark.parametrize("data", [b"", b"\x7fELF", b"\x7fELF\x02\x01" + bytes(100), b"MZ" * 100])
def test_what_is_no_cubin_is_named_so(data):
    with pytest.raises(ElfError):
        statics_of_cubin(data, architecture="sm_90a")


def test_a_host_library_is_not_taken_for_a_cubin():
    library = next(Path("/lib/x86_64-linux-gnu").glob("libc.so.6"), None) or Path("/lib64/libc.so.6")
    data = library.read_bytes()
    assert any(symbol.name == "malloc" and symbol.is_defined_function for symbol in Elf(data).symbols(".dynsym"))
    with pytest.raises(ElfError, match="not a cubin"):
        statics_of_cubin(data, architecture="sm_90a")


def test_the_compilers_figures_win_where_it_gave_any():
    code = (FunctionStatics(function="f", architecture="sm_89", spill_store_bytes=640, code_bytes=128),)
    log = (FunctionStatics(function="f", architecture="sm_89", spill_store_bytes=0),)
    (both,) = combine(code, log)
    assert (both.spill_store_bytes, both.code_bytes) == (0, 128)


@pytest.mark.parametrize(
    ("arch", "shared", "registers", "threads", "words"),
    [
        ("sm_89", 101_376, 255, 256, None),
        ("sm_89", 160 << 10, 128, 256, "163840 bytes of shared memory; sm_89 has 101376"),
        ("sm_90a", 160 << 10, 128, 256, None),
        ("sm_103a", 228 << 10, 128, 256, "shared memory"),
        ("sm_90a", 0, 255, 512, "130560 registers a block"),
        ("sm_90a", 0, 32, 2048, "2048 threads"),
    ],
)
def test_what_exceeds_an_architecture_is_said_with_its_limit(arch, shared, registers, threads, words):
    function = FunctionStatics(function="f", architecture=arch, registers=registers, static_shared_bytes=shared)
    problem = excess(function, threads=threads)
    assert (problem is None) if words is None else (words in (problem or ""))
