"""Instructions are counted without a disassembler, and the counts are those of NVIDIA's own."""

import random
import struct
import subprocess
from pathlib import Path

import pytest

from contract.devices import COMPILED_FOR
from tests.worker.jobs import FIXTURES
from tests.worker.nvdisasm import Instruction, class_of, counts_by_function, mnemonics
from worker.inspect import Elf, statics_of_cubin
from worker.inspect.sass import CLASS_OF, summarise
from worker.toolchains.nvcc import find_nvcc

EVERYWHERE = {"warp_products", "special_functions", "barriers", "copies", "local_memory"}
FUNCTIONS = {
    "sm_89": EVERYWHERE,
    "sm_90a": EVERYWHERE | {"bulk_copies", "warpgroup_products"},
    "sm_103a": EVERYWHERE | {"bulk_copies", "tensor_memory_products"},
}


@pytest.fixture(scope="module", params=COMPILED_FOR)
def compiled(request, tmp_path_factory) -> tuple[str, Path]:
    """(architecture, cubin)"""
    arch, out = request.param, tmp_path_factory.mktemp("cubin") / "instructions.cubin"
    virtual = arch.replace("sm_", "compute_")
    argv = [find_nvcc(None).path, "-O3", "-std=c++17", f"-gencode=arch={virtual},code={arch}", "--cubin", "-o", out]
    subprocess.run([*argv, FIXTURES / "instructions.cu"], capture_output=True, check=True)
    return arch, out


def counted(arch: str, cubin: Path) -> dict[str, dict[str, int]]:
    statics = statics_of_cubin(cubin.read_bytes(), architecture=arch)
    return {each.function: {name: count for name, count in each.instructions if count} for each in statics}


def test_every_function_has_the_counts_that_nvdisasm_has(compiled):
    arch, cubin = compiled
    found = counted(arch, cubin)
    assert set(found) == FUNCTIONS[arch]
    assert found == counts_by_function(cubin)


def test_each_generation_of_tensor_cores_has_a_class_of_its_own(compiled):
    arch, cubin = compiled
    found = counted(arch, cubin)
    # An architecture without a type makes it of several products of another.
    assert found["warp_products"]["mma"] >= 10
    assert set(found["warp_products"]) == {"mma"}
    if arch == "sm_90a":
        assert found["warpgroup_products"] == {"wgmma": 9}
    if arch == "sm_103a":
        assert found["tensor_memory_products"] == {"tcgen05_mma": 10, "barrier": 2}


def test_copies_special_functions_and_local_memory_are_told_apart(compiled):
    arch, cubin = compiled
    found = counted(arch, cubin)
    assert found["copies"] == {"async_copy": 2, "barrier": 1}
    assert found["special_functions"] == {"special_function": 5}
    assert set(found["local_memory"]) == {"local_load", "local_store"}
    if arch != "sm_89":
        assert found["bulk_copies"] == {"bulk_copy": 12}


def test_no_opcode_means_another_class_than_nvdisasm_says(compiled, tmp_path):
    """Every opcode in the surroundings of real instructions and of made up ones, as far as they decode at all."""
    arch, cubin = compiled
    real = instructions_of(cubin.read_bytes())
    draw = random.Random(arch)
    tried = [with_opcode(opcode, surroundings(draw, real)) for opcode in range(4096) for _ in range(24)]
    decoded = mnemonics([*real, *tried], architecture=arch, folder=tmp_path)
    assert len({low & 0xFFF for (low, _), _ in decoded}) > 400
    wrong = {
        (hex(low & 0xFFF), mnemonic)
        for (low, _), mnemonic in decoded
        if CLASS_OF.get(low & 0xFFF) != class_of(mnemonic)
    }
    assert wrong == set()
    # Few surroundings fit the rarest; they are among the real ones.
    assert {class_of(mnemonic) for _, mnemonic in decoded} >= {
        name for each in counted(arch, cubin).values() for name in each
    }


def test_an_architecture_that_nobody_checked_has_no_counts(compiled):
    _, cubin = compiled
    (statics, *_) = statics_of_cubin(cubin.read_bytes(), architecture="sm_120")
    assert statics.instructions is None
    assert statics.registers


def test_half_an_instruction_at_the_end_is_ignored():
    stored = struct.pack("<QQ", 0x387, 0b100 << 9)
    code = summarise(stored * 3 + stored[:9], architecture="sm_89")
    assert (code.counts.local_store, code.local_store_bytes, code.local_load_bytes) == (3, 12, 0)


def instructions_of(cubin: bytes) -> list[Instruction]:
    elf = Elf(cubin)
    code = (elf.content(section) for section in elf.sections if section.name.startswith(".text."))
    return list(dict.fromkeys(each for part in code for each in struct.iter_unpack("<QQ", part)))


def surroundings(draw: random.Random, real: list[Instruction]) -> Instruction:
    """The other bits: of a real instruction, perhaps with one of them flipped, or a few of nothing."""
    if draw.random() < 0.6:
        low, high = draw.choice(real)
        return low ^ draw.choice((0, 1 << draw.randrange(12, 64))), high ^ draw.choice((0, 1 << draw.randrange(64)))
    low, high = 0x7000, 0x000FC00000000000  # without a predicate; with a stall
    for _ in range(draw.randrange(8)):
        low |= 1 << draw.randrange(16, 64)
        high |= 1 << draw.randrange(64)
    return low, high


def with_opcode(opcode: int, instruction: Instruction) -> Instruction:
    return (instruction[0] & ~0xFFF) | opcode, instruction[1]
