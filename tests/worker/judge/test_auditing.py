"""When a time is not believed: the launcher's events against the judge's clock, and the roofline."""

from __future__ import annotations

from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from contract.outcomes import Reason
from worker.judge.bursts import Burst, Subject
from worker.judge.case import CaseRun
from worker.judge.device_cpu import CpuDevice
from worker.judge.faults import FaultError
from worker.judge.turns import Turn
from worker.operators.gemm import GEMM

DIMS = {"m": 64, "n": 64, "k": 64}


class EventDevice(CpuDevice):
    """A CPU that claims to have events, and a roofline of 5 us."""

    measures_itself: Any = True

    def roofline_us(self, *, flops: float, bytes_moved: float, dtype: str) -> float:
        assert flops > 0
        assert bytes_moved > 0
        assert dtype == "fp32"
        return 5.0


def run_of(pairs: int, *, head_us: float, hidden_us: float) -> CaseRun:
    """Pairs of 1000 calls a burst; the judge's clock sees `hidden_us` a call more of the head than its events claim."""
    how: Any = SimpleNamespace(dtype="fp32")  # all that an audit asks of the numerics
    subject = Subject(device=EventDevice(), operator=GEMM, case="m=64,n=64,k=64", dims=DIMS, how=how, call_limit_s=1.0)
    run = CaseRun(
        subject=subject,
        tensors=GEMM.tensors(DIMS, "fp32"),
        allowed_slowdown=0.005,
        seed=0,
        against_base=True,
    )
    noise = Random(1)

    def turn(claimed: float, hidden: float) -> Turn:
        claimed *= 1 + noise.gauss(0, 1e-4)
        return Turn(bursts=(Burst(calls=1000, claimed_us=claimed * 1e3, clock_us=(claimed * 1.015 + hidden) * 1e3),))

    for _ in range(pairs):
        run.rounds.append([([turn(head_us, hidden_us)], [turn(20.0, 0.0)])])
    return run


def watched(*alone_us: float, calls: int = 1000) -> CaseRun:
    """Bursts of calls of 20 us, of each of which one call took so long by itself."""
    run = run_of(0, head_us=20.0, hidden_us=0.0)
    for us in alone_us:
        burst = Burst(calls=calls, claimed_us=20.0 * calls, clock_us=20.3 * calls, watched_us=us)
        run.rounds.append([([Turn(bursts=(burst,))], [Turn(bursts=(Burst(calls, 20.0 * calls, 20.3 * calls),))])])
    return run


def test_calls_that_take_alone_what_they_take_in_a_burst_are_believed() -> None:
    watched(21.0, 22.0, 19.0, 26.0, 21.0).audit()
    watched(*[22.0] * 7, 3.0).audit()  # one that nobody can explain
    watched(*[3.0] * 8, calls=20).audit()  # too short a burst to tell


def test_bursts_that_something_else_on_the_card_made_longer_are_believed() -> None:
    """A display's turn falls into the burst, and not into the one call."""
    run = run_of(0, head_us=20.0, hidden_us=0.0)
    usual = Burst(calls=100, claimed_us=2000.0, clock_us=2300.0, watched_us=21.0)
    longer = Burst(calls=100, claimed_us=4400.0, clock_us=4700.0, watched_us=21.0)
    rival = Turn(bursts=(Burst(100, 2000.0, 2300.0),))
    run.rounds = [[([Turn(bursts=(usual, longer))], [rival])]] * 4
    run.audit()


@pytest.mark.parametrize("alone_us", [[3.0] * 4 + [70.0] * 4, [22.0] * 6 + [11.0] * 2])
def test_calls_whose_work_their_neighbours_did_are_untrusted(alone_us: list[float]) -> None:
    """A burst's own time doesn't show them: another call took so much longer."""
    with pytest.raises(FaultError, match="calls do each other's work") as caught:
        watched(*alone_us).audit()
    assert (caught.value.reason, caught.value.side) == (Reason.CALLS_OVERLAP, "head")


@pytest.mark.parametrize(("alone_us", "processes"), [(50.0, 4), (500.0, 2)])
def test_calls_that_take_alone_little_more_than_among_others_are_believed(alone_us: float, processes: int) -> None:
    """And two processes don't tell."""
    run = watched(*[21.0] * 8)
    run.lone_calls = [Burst(1, alone_us, 400.0)] * processes
    run.audit()


def test_calls_that_take_much_more_without_neighbours_are_untrusted() -> None:
    """Two calls do the work of both side by side, and rest until they took the same: none of the burst stands out."""
    run = watched(*[21.0] * 8)
    run.lone_calls = [Burst(1, us, 400.0) for us in (52.0, 53.0, 51.5, 20.0)]
    with pytest.raises(FaultError, match=r"by itself and 20\.00 us among others") as caught:
        run.audit()
    assert (caught.value.reason, caught.value.side) == (Reason.CALLS_OVERLAP, "head")


def test_events_and_clock_that_agree_are_believed() -> None:
    run_of(8, head_us=18.0, hidden_us=0.0).audit()


def test_a_bursts_start_up_weighs_more_on_the_faster_side_and_is_no_lie() -> None:
    run = run_of(8, head_us=9.0, hidden_us=0.0)
    for (head, base), *_ in run.rounds:
        for turns in (head, base):
            claimed = turns[0].bursts[0].claimed_us
            assert claimed is not None
            turns[0] = Turn(bursts=(Burst(calls=1000, claimed_us=claimed, clock_us=claimed + 800.0),))
    run.audit()


def test_time_hidden_from_the_events_is_untrusted() -> None:
    with pytest.raises(FaultError, match="that the launcher's events do not") as caught:
        run_of(8, head_us=18.0, hidden_us=0.2).audit()
    assert caught.value.reason is Reason.CLOCKS_DISAGREE


def test_a_lie_far_beyond_the_noise_is_seen_where_four_pairs_decide() -> None:
    with pytest.raises(FaultError, match="that the launcher's events do not"):
        run_of(4, head_us=18.0, hidden_us=0.2).audit()


def test_fewer_than_four_pairs_are_no_evidence_of_lies() -> None:
    run_of(3, head_us=18.0, hidden_us=0.2).audit()


def test_a_time_below_the_roofline_is_untrusted() -> None:
    with pytest.raises(FaultError, match=r"at least 5\.00 us") as caught:
        run_of(4, head_us=4.9, hidden_us=0.0).audit()
    assert caught.value.reason is Reason.FASTER_THAN_ROOFLINE
