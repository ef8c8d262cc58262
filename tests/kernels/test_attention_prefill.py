"""attention_prefill's revisions are right at the edges of their blocks, in Triton's interpreter."""

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.kernels.shipped import KERNELS, ROOT, suite_of

SEQLENS = {1, 17, 127, 129}


def test_every_revision_is_as_exact_as_fp16_attention_where_blocks_are_cut():
    suite = suite_of("attention_prefill")
    folders = [str(KERNELS / "attention_prefill" / name) for name in suite.revisions]
    cases = [case.dims for case in suite.verify_cases if case.dims["seqlen"] in SEQLENS]
    assert {case["seqlen"] for case in cases} == SEQLENS
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("interpret_attention.py")), json.dumps([folders, cases])],
        env={**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert len(found) == len(folders) * len(cases)
    for entry in found:
        assert entry["error"] <= 2 * entry["fp16_error"] + 1e-5, entry
