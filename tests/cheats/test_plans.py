"""Item 47: bursts that are made short, so that a slowdown hides in what starting them takes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from unittest import mock

import pytest

from contract.outcomes import Reason
from tests.cheats.conftest import job_of
from worker.judge.case import CaseRun
from worker.judge.device_cpu import CpuDevice
from worker.judge.faults import FaultError
from worker.judge.judge import Judge
from worker.judge.measure import Measurement
from worker.judge.secret import SecretRandom
from worker.judge.sides import Baseline, Revision

Measured = Callable[..., CaseRun]


@pytest.fixture
def measured(library: Path) -> Measured:
    """A case after one process of an entry, which asks for this many bytes of workspace; without a baseline."""

    def run(entry: str, *, workspace_bytes: int | None = None) -> CaseRun:
        device, random, job = CpuDevice(), SecretRandom(5), job_of(library, entry)
        arena = device.arena(32 << 20)
        head = Revision("head", job.head, device=device, arena=arena, run_as=(), call_limit_s=5.0)
        case = Judge(job, device, lambda _: None)._case_run(job.suite.cases[0], None)
        measurement = Measurement(
            device=device,
            arena=arena,
            head=head,
            base=None,
            baseline=mock.Mock(layout=Baseline.layout, backends=()),
            random=random,
            max_processes=1,
            progress=lambda _: None,
        )
        launcher = head.start()
        ask = launcher.ask

        def asked(*args: object, **more: object) -> object:
            reply = ask(*args, **more)
            asks = reply.workspace_bytes and workspace_bytes
            return reply.model_copy(update={"workspace_bytes": workspace_bytes}) if asks else reply

        try:
            with mock.patch.object(launcher, "ask", asked):
                measurement._measure_case(0, case, launcher, None)
        finally:
            launcher.close()
            arena.close()
        return case

    return run


def calls(case: CaseRun) -> int:
    assert case.plan is not None
    return case.plan.calls


def estimates(monkeypatch: pytest.MonkeyPatch, *times_us: float) -> None:
    """What a call takes whenever bursts are planned; the last one for ever."""
    left = list(times_us)
    monkeypatch.setattr(Measurement, "_estimate", lambda *_: left.pop(0) if len(left) > 1 else left[0])


@pytest.mark.parametrize("times_us", [(20.0,), (100_000.0, 20.0)])
def test_47_who_is_slow_while_bursts_are_planned_does_not_make_them_short(
    measured: Measured, monkeypatch: pytest.MonkeyPatch, times_us: tuple[float, ...]
) -> None:
    estimates(monkeypatch, *times_us)
    assert calls(measured("honest")) > 100


def test_47_who_is_slow_at_every_plan_is_untrusted(measured: Measured, monkeypatch: pytest.MonkeyPatch) -> None:
    estimates(monkeypatch, 100_000.0)
    with pytest.raises(FaultError, match="3 times") as caught:
        measured("honest")
    assert (caught.value.reason, caught.value.side) == (Reason.CLOCKS_DISAGREE, "head")


@pytest.mark.parametrize(("workspace_bytes", "fits"), [(64 << 10, True), (8 << 20, False)])
def test_47_a_workspace_does_not_make_bursts_short(
    measured: Measured, monkeypatch: pytest.MonkeyPatch, workspace_bytes: int, fits: bool
) -> None:
    estimates(monkeypatch, 20.0)
    if fits:
        assert calls(measured("honest", workspace_bytes=workspace_bytes)) > 100
        return
    with pytest.raises(FaultError, match="leaves room for 1 calls") as caught:
        measured("honest", workspace_bytes=workspace_bytes)
    assert (caught.value.reason, caught.value.side) == (Reason.NOT_RECORDABLE, "head")
