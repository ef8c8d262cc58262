"""The ctypes structures against the shipped header, by a library that reads a call back."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import pytest

from contract.layout import lay_out
from worker.operators import OPERATORS
from worker.record.abi import build_call
from worker.record.source import scratch_windows

INCLUDE = Path(__file__).resolve().parents[3] / "worker" / "toolchains" / "include"
SOURCE = r"""
#include "kernelgate.h"
#include <stdio.h>
static char text[4096];
static int put(char* to, const kg_tensor* t) {
  int n = sprintf(to, "%p/%d/%d:", t->data, t->rank, t->dtype);
  for (int i = 0; i < 4; ++i) n += sprintf(to + n, " %ld,%ld", (long)t->shape[i], (long)t->stride[i]);
  return n + sprintf(to + n, "\n");
}
extern "C" const char* describe(const kg_call* c) {
  char* to = text;
  for (int i = 0; i < c->n_in; ++i) to += put(to, c->in + i);
  for (int i = 0; i < c->n_out; ++i) to += put(to, c->out + i);
  to += sprintf(to, "%ld %ld %ld %p %zu %p", (long)kg_param_value(c, "m"), (long)kg_param_value(c, "k"),
                (long)kg_param_value(c, "q"), c->workspace, c->workspace_bytes, c->stream);
  return text;
}
"""


@pytest.fixture(scope="module")
def describe(tmp_path_factory):
    folder = tmp_path_factory.mktemp("abi")
    (folder / "describe.cpp").write_text(SOURCE)
    subprocess.run(
        ["g++", "-shared", "-fPIC", f"-I{INCLUDE}", "-o", folder / "describe.so", folder / "describe.cpp"],
        check=True,
        timeout=60,
    )
    function = ctypes.CDLL(str(folder / "describe.so")).describe
    function.restype = ctypes.c_char_p
    return function


def test_a_call_reaches_the_library_as_the_header_says(describe):
    dims = {"m": 64, "n": 32, "k": 16}
    tensors = OPERATORS["gemm"].tensors(dims, "fp16")
    built = build_call(
        [(spec, 0x1000 * (place + 1)) for place, spec in enumerate(tensors)],
        dims,
        workspace=0x9000,
        workspace_bytes=96,
        stream=0xABC,
    )
    assert describe(ctypes.byref(built.call)).decode().splitlines() == [
        "0x1000/2/0: 64,16 16,1 0,0 0,0",
        "0x2000/2/0: 16,32 32,1 0,0 0,0",
        "0x3000/2/0: 64,32 32,1 0,0 0,0",
        "64 16 -1 0x9000 96 0xabc",
    ]


def test_asked_for_its_workspace_a_library_sees_shapes_and_no_addresses(describe):
    dims = {"batch": 2, "heads": 4, "kv_heads": 2, "seqlen": 8, "head_dim": 16, "causal": 1}
    tensors = OPERATORS["attention"].tensors(dims, "fp16")
    built = build_call([(spec, 0) for spec in tensors], dims)
    lines = describe(ctypes.byref(built.call)).decode().splitlines()
    assert lines[1] == "(nil)/4/0: 2,256 8,32 2,16 16,1"
    assert lines[-1] == "-1 -1 -1 (nil) 0 (nil)"


def test_the_two_scratch_slots_do_not_overlap_and_are_aligned_no_better_than_slots_of_the_arena():
    layout = lay_out(OPERATORS["gemm"].tensors({"m": 64, "n": 32, "k": 16}, "fp16"), workspace_bytes=100)
    asked: list[int] = []

    def allocate(size: int) -> int:
        asked.append(size)
        return 0x7F00_0000_0100

    first, second = scratch_windows(layout, allocate)
    assert first.base % 1024 == second.base % 1024 == 512
    assert first.base >= 0x7F00_0000_0100
    assert second.base >= first.base + layout.slot_bytes
    assert second.base + layout.slot_bytes <= 0x7F00_0000_0100 + asked[0]
