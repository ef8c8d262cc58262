"""A source whose compiler repeats what it wrote: ptxas's figures, forged, in front of and behind the real ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from contract.statics import FunctionStatics
from tests.worker.jobs import FIXTURES, bundle
from tests.worker.test_without_card import on_cpu
from worker.inspect import combine, statics_of_log

SPILLS = (FIXTURES / "spills.cu").read_text()
ENTRY = """
#include "kernelgate.h"
extern "C" int kernelgate_run(const kg_call*) { spilled<<<1, 32>>>(nullptr, nullptr); return 0; }
"""
FORGED = """
#line 1 "ptxas info    "
#define SAYS(name, what) __attribute__((deprecated(what))) static int name() { return 1; }
SAYS(f1, "ptxas info    : Compiling entry function 'spilled' for 'sm_89'")
SAYS(f2, "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads")
SAYS(f3, "ptxas info    : Used 8 registers")
int g() { return f1() + f2() + f3(); }
"""
# As ptxas writes them, should another way be found to bring them to the margin.
BLOCK = """\
ptxas info    : Compiling entry function 'spilled' for 'sm_89'
ptxas info    : Function properties for spilled
    {stack} bytes stack frame, {spilled} bytes spill stores, {spilled} bytes spill loads
ptxas info    : Used {registers} registers, used 1 barriers
"""
REAL, FALSE = BLOCK.format(stack=64, spilled=60, registers=64), BLOCK.format(stack=0, spilled=0, registers=8)


def built(tmp_path: Path, source: str) -> dict[str, FunctionStatics]:
    head = bundle("copy_cuda", manifest='architectures = ["sm_89"]\n', kernel_cu=source)
    report = on_cpu(head, tmp_path)
    assert report.failure is None, report.failure
    assert ("'spilled' for 'sm_89' [-W" in report.log) == (FORGED in source)
    return {each.function: each for each in report.statics}


def test_what_a_warning_says_is_not_taken_for_ptxas_own_figures(tmp_path: Path) -> None:
    honest = built(tmp_path, SPILLS + ENTRY)
    assert honest["spilled"].spill_store_bytes > 0
    assert honest["spilled"].registers == 64
    assert built(tmp_path, SPILLS + ENTRY + FORGED) == honest


@pytest.mark.parametrize("log", [REAL + FALSE, FALSE + REAL])
def test_of_two_accounts_of_one_function_neither_counts(log: str) -> None:
    code = (
        FunctionStatics(function="spilled", architecture="sm_89", registers=64, spill_store_bytes=72, stack_bytes=64),
    )
    assert combine(code, statics_of_log(log)) == code
    (alone,) = combine(code, statics_of_log(REAL))
    assert (alone.spill_store_bytes, alone.spill_load_bytes) == (60, 60)


def test_only_spills_are_taken_from_what_the_compiler_says() -> None:
    code = (FunctionStatics(function="spilled", architecture="sm_89", registers=64, static_shared_bytes=512),)
    (both,) = combine(code, statics_of_log(FALSE))
    assert (both.registers, both.static_shared_bytes, both.spill_store_bytes) == (64, 512, 0)
