"""A suite's limits on the machine code, on what the compilers really make for each class, without a card."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from cli.local.judged import evaluation_of
from contract.bundle import Files
from contract.devices import ARCHITECTURES
from contract.gate import GateAnswer, GateConclusion, GateSubject
from contract.outcomes import Outcome
from contract.suite import Policy, StaticLimit
from tests.worker.jobs import FIXTURES, bundle, bundles, job, settings, suite
from verdict.gate import gate
from worker.pipeline import evaluate

CLASSES = ("rtx4090", "h200", "b300")
LIMITS = (
    StaticLimit(metric="spill_bytes", at_most=0),
    StaticLimit(metric="code_bytes", growth=0.5),
    StaticLimit(metric="local_load_instructions", growth=0.0),
)


def judged(head: Files, base: Files, tmp_path: Path, device_class: str) -> tuple[GateAnswer, int]:
    """The gate's answer to a build of both, and the head's spills."""
    policy = Policy(static_limits=LIMITS, build_only_device_classes=(device_class,))
    wanted = suite("fp16", 512, policy=policy)
    asked = job(head, base, device_class=device_class, build_only=True, suite=wanted)
    run = settings(tmp_path)
    report = evaluate(asked, bundles(head, base), settings=run, on_progress=lambda _: None, cancelled=lambda: False)
    made = evaluation_of(asked, report, node="here", started_at=datetime.now(UTC))
    assert made.outcome is Outcome.BUILT
    sides = (made.statics, made.base_statics)
    assert [{each.architecture for each in side} for side in sides] == [{ARCHITECTURES[made.device_class]}] * 2
    answer = gate([GateSubject(suite=wanted, evaluations=(made,))])
    return answer, sum(each.value("spill_bytes") or 0 for each in made.statics)


def said(answer: GateAnswer) -> list[str]:
    return [row.said for row in answer.rows]


@pytest.mark.parametrize("device_class", CLASSES)
def test_spills_and_growth_of_cuda_code_fail(tmp_path, device_class):
    base = bundle("copy_cuda")
    wider = base["kernel.cu"].decode().replace("tile[256]", "tile[512]")
    fine, spills = judged(bundle("copy_cuda", kernel_cu=wider), base, tmp_path, device_class)
    assert (fine.conclusion, spills) == (GateConclusion.SUCCESS, 0)
    spilling = base["kernel.cu"].decode() + (FIXTURES / "spills.cu").read_text()
    answer, spills = judged(bundle("copy_cuda", kernel_cu=spilling), base, tmp_path, device_class)
    assert answer.conclusion is GateConclusion.FAILURE
    assert f"spills: {spills} bytes, at most 0 allowed" in said(answer)
    assert any(words.startswith("code: ") and words.endswith("(50 % allowed)") for words in said(answer))
    assert any(
        words.startswith("local load instructions: ") and "up from the base's 0" in words for words in said(answer)
    )


@pytest.mark.parametrize("device_class", CLASSES)
def test_spills_of_triton_code_fail(tmp_path, device_class):
    base = bundle("gemm_descriptors")
    fine, spills = judged(base, base, tmp_path, device_class)
    assert (fine.conclusion, spills) == (GateConclusion.SUCCESS, 0)
    tighter = base["kernel.py"].decode().replace("num_warps=8", "num_warps=4, maxnreg=128")
    answer, spills = judged(bundle("gemm_descriptors", kernel_py=tighter), base, tmp_path, device_class)
    assert answer.conclusion is GateConclusion.FAILURE
    assert f"spills: {spills} bytes, at most 0 allowed" in said(answer)
    assert any(words.startswith("local load instructions: ") for words in said(answer))
