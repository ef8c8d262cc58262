"""kernelgate.h is C as well as C++, with the layout that launchers assume."""

import subprocess
from pathlib import Path

import pytest

from tests.kernels.shipped import INCLUDE

SOURCE = """
#include "kernelgate.h"
#define SAME(name, condition) typedef char name[(condition) ? 1 : -1]
SAME(tensor_is_80_bytes, sizeof(kg_tensor) == 80);
SAME(strides_follow_the_shape, offsetof(kg_tensor, stride) == 40);
SAME(call_is_64_bytes, sizeof(kg_call) == 64);
SAME(the_stream_is_last, offsetof(kg_call, stream) == 56);
int kernelgate_run(const kg_call* call) { return (int)kg_param_value(call, "m"); }
"""


@pytest.mark.parametrize(("compiler", "standard"), [("gcc", "c99"), ("g++", "c++11")])
def test_the_header_compiles_and_its_structures_keep_their_layout(tmp_path: Path, compiler: str, standard: str):
    source = tmp_path / ("source.c" if compiler == "gcc" else "source.cpp")
    source.write_text(SOURCE)
    done = subprocess.run(
        [compiler, f"-std={standard}", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", f"-I{INCLUDE}", str(source)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
