"""What the judge decides from its samples, the service decides from the report: else honest work ends as our error.

The worker judges all cases together at each look, and cases stop at different looks; the service sees the report
alone. Nothing runs here but the judge's rules for stopping, its report, and the service's verdicts.
"""

from __future__ import annotations

from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from contract.devices import DeviceClass
from contract.job import PROTOCOL_VERSION
from contract.report import CaseResult, Report
from contract.samples import Pair
from contract.suite import Case, Policy, Suite
from service.judging import judge
from worker.judge.bursts import Burst, Subject
from worker.judge.case import CaseRun
from worker.judge.measure import Measurement
from worker.judge.turns import Turn
from worker.operators import OPERATORS

SUITE = Suite(
    kernel="gemm",
    operator="gemm",
    dtype="fp32",
    device_classes=(DeviceClass.CPU,),
    cases=tuple(Case(dims={"m": size, "n": size, "k": size}) for size in (16, 32, 64, 128)),
    policy=Policy(allowed_slowdown=0.02),
)
DEVICE: Any = SimpleNamespace(measures_itself=False)
BASELINE: Any = SimpleNamespace(backends=("torch",), load=lambda *_: "torch")
HOW: Any = SimpleNamespace(dtype="fp32")
NOBODY: Any = None
# Nothing, what is allowed, a bit more, and what a wild machine or a slow revision does.
RATIOS = (0.7, 1.0, 1.02, 1.03, 1.05, 2.2)
SPREADS = (0.001, 0.01, 0.05, 0.5)


class Simulated(Measurement):
    """Draws the samples of a pair instead of measuring them."""

    def __init__(self, random: Random, *, most: int) -> None:
        super().__init__(
            device=DEVICE,
            arena=NOBODY,
            head=NOBODY,
            base=NOBODY,
            baseline=BASELINE,
            random=random,
            max_processes=most,
            progress=lambda _: None,
        )
        self.truth = {case.id: (random.choice(RATIOS), random.choice(SPREADS)) for case in SUITE.cases}

    def _pair(self, pair: int, unfinished: list[CaseRun], runs: list[CaseRun]) -> None:
        for run in unfinished:
            ratio, spread = self.truth[run.case]
            run.first_calls.append(Burst(calls=1, claimed_us=None, clock_us=100.0))
            run.rounds.append([(self._turns(ratio, spread), self._turns(1.0, spread)) for _ in range(2)])

    def _turns(self, ratio: float, spread: float) -> list[Turn]:
        process = 100.0 * ratio * self._random.lognormvariate(0.0, spread)
        bursts = tuple(
            Burst(calls=7, claimed_us=None, clock_us=7 * process * self._random.lognormvariate(0.0, spread / 4))
            for _ in range(3)
        )
        return [Turn(bursts=bursts)]


def measured(seed: int, *, most: int) -> tuple[CaseResult, ...]:
    """The cases of a report, as the service reads them off the wire."""
    runs = []
    for case in SUITE.cases:
        subject = Subject(
            device=DEVICE,
            operator=OPERATORS["gemm"],
            case=case.id,
            dims=case.dims,
            how=HOW,
            call_limit_s=1.0,
        )
        allowed = SUITE.allowed_slowdown(case.id, device_class=DeviceClass.CPU)
        runs.append(CaseRun(subject=subject, tensors=(), allowed_slowdown=allowed, seed=0, against_base=True))
    Simulated(Random(seed), most=most).run(runs)
    report = Report(
        protocol_version=PROTOCOL_VERSION, device_class=DeviceClass.CPU, cases=tuple(run.result() for run in runs)
    )
    return Report.model_validate_json(report.model_dump_json()).cases


@pytest.mark.parametrize("most", [1, 4, 6, 16])
def test_the_service_says_of_every_case_what_the_judge_said(most: int) -> None:
    stopped: set[int] = set()
    for seed in range(60):
        cases = measured(seed, most=most)
        judged = judge(SUITE, cases, {}, device_class=DeviceClass.CPU)  # raises where it disagrees
        assert {case.case: case.judgement for case in cases} == {name: each.judgement for name, each in judged.items()}
        stopped |= {len(case.pairs) for case in cases}
    assert stopped == {1: {1}, 4: {4}, 6: {4, 6}, 16: {4, 8, 16}}[most]


def test_evidence_of_repeats_changes_the_verdict_and_never_the_agreement() -> None:
    earlier: dict[str, list[Pair]] = {}
    for seed in range(4):
        cases = measured(seed, most=16)
        judged = judge(SUITE, cases, earlier, device_class=DeviceClass.CPU)
        assert {name: each.pooled for name, each in judged.items()} == {
            case.case: len(earlier.get(case.case, ())) for case in cases
        }
        for case in cases:
            earlier.setdefault(case.case, []).extend(case.pairs)
