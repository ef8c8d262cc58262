"""What one case has shown so far, and the result that it makes."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from scipy import special

from contract.layout import TensorSpec
from contract.names import CaseId
from contract.outcomes import Reason
from contract.report import CaseResult, Metric
from contract.samples import Comparison, Pair, Round
from contract.spreads import Spread
from contract.verdicts import Judgement
from verdict import LOOKS
from verdict.floors import CAPPED, learnt_floor
from worker.judge import metrics
from worker.judge.bursts import Burst, Subject
from worker.judge.faults import FaultError
from worker.judge.plan import Plan
from worker.judge.turns import Turn

_NUMBERS: tuple[Literal[1], Literal[2], Literal[3]] = (1, 2, 3)
# The judge's clock sees a burst's start-up (0.1 to 0.8 ms) and the launcher's events don't. It adds to a burst and does
# not scale with it, so what is compared between head and base is the surplus, not the ratio. Start-ups may differ by
# the nodes of a call's graph. One honest evaluation in 100,000 would exceed the noise by chance.
_AUDIT_LEAST, _AUDIT_STARTUP_US, _AUDIT_ALPHA, _AUDIT_PAIRS = 1e-3, 100.0, 5e-6, 4
# Calls of a burst may not do each other's work. One that is timed inside takes what the others take, and a few us for
# its events: much less is work that a neighbour has done. One without neighbours can't take much more than they do.
_WATCHED_LEAST, _WATCHED_SHARE = 0.6, 0.01
_WATCHED_BURST_US = 500.0  # in a shorter one its start-up weighs
_ALONE_MOST, _ALONE_STARTUP_US, _ALONE_PAIRS = 1.3, 25.0, 3


@dataclass
class CaseRun:
    """One case while it is measured. Per pair: a list of rounds (head's turns, base's turns)."""

    subject: Subject
    tensors: tuple[TensorSpec, ...]
    allowed_slowdown: float
    seed: int
    against_base: bool
    base_skipped: str | None = None
    same_artifact: bool = False
    deterministic: bool | None = None
    workspace_bytes: int = 0
    plan: Plan | None = None
    plans: int = 0  # made so far
    capped: bool = False
    estimates: dict[str, float] = field(default_factory=dict)  # us a call by side, when the plan was made
    rounds_a_pair: int | None = None
    rounds: list[list[tuple[list[Turn], list[Turn]]]] = field(default_factory=list)
    first_calls: list[Burst] = field(default_factory=list)  # of the head's processes
    lone_calls: list[Burst] = field(default_factory=list)  # after its bursts, in each process, where events tell
    baselines: dict[str, list[tuple[int, float]]] = field(default_factory=dict)
    baseline_name: str | None = None
    held_s: float = 0.0
    spreads: tuple[Spread, ...] = ()
    judgement: Judgement | None = None
    looked_at: int = 0  # processes a side at the last look
    done: bool = False

    @property
    def case(self) -> CaseId:
        return self.subject.case

    @property
    def pairs(self) -> tuple[Pair, ...]:
        if not self.against_base:
            return ()
        return tuple(
            Pair(rounds=tuple(Round(head=_times(head), base=_times(base)) for head, base in rounds))
            for rounds in self.rounds
        )

    @cached_property
    def spread_floor(self) -> float | None:
        """Of calls like the base's, where the node has learnt it; asked at the first look, and the same at each."""
        dims, dtype = self.subject.dims, self.subject.how.dtype
        learnt = learnt_floor(
            self.spreads,
            time_us=statistics.median(self.process_values(1)),
            bytes_a_call=self.subject.operator.bytes_moved(dims, dtype),
            capped=self.capped,
        )
        return CAPPED if learnt is None and self.capped else learnt

    def forget(self) -> None:
        """What was measured by this plan: there is to be another."""
        self.plan, self.rounds_a_pair, self.looked_at, self.judgement = None, None, 0, None
        self.rounds, self.baselines = [], {}
        self.__dict__.pop("spread_floor", None)

    def comparison(self) -> Comparison:
        """What the last look saw."""
        look: Literal[1, 2, 3] | None = None
        if self.looked_at in LOOKS:
            look = _NUMBERS[LOOKS.index(self.looked_at)]
        return Comparison(
            unit="us",
            allowed_slowdown=self.allowed_slowdown,
            pairs=self.pairs[: self.looked_at],
            spread_floor=self.spread_floor,
            seed=self.seed,
            look=look,
        )

    @property
    def known_us(self) -> float:
        """What a call of the head took in its first turns; 0 before any."""
        times = [turn.time_us for turn in self._turns]
        return statistics.median(times) if times else 0.0

    def process_values(self, side: int) -> list[float]:
        """Each process's one value, us: side 0 is head, 1 base."""
        return [statistics.median(time for round_ in rounds for time in _times(round_[side])) for rounds in self.rounds]

    def audit(self) -> None:
        """Raise FaultError where the head's times can't be trusted."""
        head = self.process_values(0)
        operator, dims, dtype = self.subject.operator, self.subject.dims, self.subject.how.dtype
        floor = self.subject.device.roofline_us(
            flops=operator.flops(dims), bytes_moved=operator.bytes_moved(dims, dtype), dtype=dtype
        )
        if statistics.median(head) < floor:
            raise FaultError(
                Reason.FASTER_THAN_ROOFLINE,
                f"{statistics.median(head):.2f} us a call; this device needs at least {floor:.2f} us for the work",
                side="head",
                case=self.case,
            )
        self._audit_neighbours()
        if not self.against_base or len(self.rounds) < _AUDIT_PAIRS or not self.subject.device.measures_itself:
            return
        shortest_us = min(_mean(head, _claimed) for rounds in self.rounds for head, _ in rounds)
        hidden = [_hidden_us(rounds) / shortest_us for rounds in self.rounds]
        noise = (
            statistics.stdev(hidden)
            / math.sqrt(len(hidden))
            * float(special.stdtrit(len(hidden) - 1, 1 - _AUDIT_ALPHA))
        )
        allowed = max(_AUDIT_LEAST, _AUDIT_STARTUP_US / shortest_us, noise)
        if abs(statistics.fmean(hidden)) > allowed:
            raise FaultError(
                Reason.CLOCKS_DISAGREE,
                f"of head's bursts the judge's clock sees {statistics.fmean(hidden):+.2%} that the launcher's events do"
                f" not, beyond what it sees of base's; at most {allowed:.2%} is allowed",
                side="head",
                case=self.case,
            )

    def _audit_neighbours(self) -> None:
        # Each beside its own turn: a card's clock may change from one to the next. Beside the quickest burst of it, as
        # something else on the card (a display) or a clock that is still rising makes single bursts longer.
        shares = [
            burst.watched_us / min(other.time_us for other in turn.bursts)
            for turn in self._turns
            for burst in turn.bursts
            if burst.watched_us is not None and burst.calls * burst.time_us >= _WATCHED_BURST_US
        ]
        short = [share for share in shares if share < _WATCHED_LEAST]
        if len(short) > max(1, _WATCHED_SHARE * len(shares)):
            raise self._overlap(
                f"{len(short)} of {len(shares)} calls that were timed alone took {statistics.median(short):.0%} of what"
                " a call of their burst took"
            )
        usual_us = statistics.median(self.process_values(0))
        if len(self._alone_us) < _ALONE_PAIRS or all(burst.calls == 1 for burst in self._bursts):
            return
        alone_us = statistics.median(self._alone_us)
        if alone_us > _ALONE_MOST * usual_us + _ALONE_STARTUP_US:
            raise self._overlap(f"a call takes {alone_us:.2f} us by itself and {usual_us:.2f} us among others")

    def _overlap(self, what: str) -> FaultError:
        return FaultError(Reason.CALLS_OVERLAP, f"{what}: calls do each other's work", side="head", case=self.case)

    @property
    def _alone_us(self) -> list[float]:
        return [burst.time_us for burst in self.lone_calls]

    @property
    def _turns(self) -> list[Turn]:
        """The head's."""
        return [turn for rounds in self.rounds for head, _ in rounds for turn in head]

    @property
    def _bursts(self) -> list[Burst]:
        return [burst for turn in self._turns for burst in turn.bursts]

    def result(self) -> CaseResult:
        return CaseResult(
            case=self.case,
            base_skipped=self.base_skipped,
            metrics=tuple(self._metrics()),
            baseline=self.baseline_name,
            pairs=self.pairs,
            same_artifact=self.same_artifact,
            power_capped=self.capped,
            spread_floor=self.spread_floor if self.looked_at else None,
            judgement=self.judgement,
            held_s=round(self.held_s, 4),
        )

    def _metrics(self) -> list[Metric]:
        operator, dims = self.subject.operator, self.subject.dims
        head = self.process_values(0)
        time = metrics.of_processes("time", "us", head, better="lower")
        flops = operator.flops(dims)
        gpu = self.subject.device.measures_itself
        found = [
            time,
            metrics.inverted(time, "throughput", "TFLOPS" if gpu else "GFLOPS", flops / (1e6 if gpu else 1e3)),
        ]
        for place, (backend, turns) in enumerate(self.baselines.items()):
            name = "baseline_time" if place == 0 else f"{backend}_time"
            found.append(metrics.of_processes(name, "us", [value for _, value in turns], better=None))
            if place == 0:
                ratios = [value / head[pair] for pair, value in turns]
                found.append(metrics.of_processes("throughput_over_baseline", "ratio", ratios, better="higher"))
        if self.against_base:
            found.append(metrics.of_processes("base_time", "us", self.process_values(1)))
        latencies = [burst.clock_us for burst in self.first_calls]
        found.append(metrics.of_processes("first_call_latency", "us", latencies, better="lower"))
        watched = [burst.watched_us for burst in self._bursts if burst.watched_us is not None]
        for name, values in (("single_call_time", self._alone_us), ("watched_call_time", watched)):
            if values:
                found.append(metrics.of_processes(name, "us", values, better="lower"))
        moved = operator.bytes_moved(dims, self.subject.how.dtype)
        found.append(metrics.plain("flops_per_byte", "FLOP/B", flops / moved))
        found.append(metrics.plain("workspace_bytes", "B", self.workspace_bytes, better="lower"))
        if self.deterministic is not None:
            found.append(metrics.plain("deterministic", "bool", float(self.deterministic)))
        found.extend(self._device_metrics())
        found.append(metrics.plain("held_s", "s", round(self.held_s, 4)))
        return found

    def _device_metrics(self) -> list[Metric]:
        found = []
        for key, name, unit in (
            ("sm_clock_mhz", "sm_clock", "MHz"),
            ("power_w", "power", "W"),
            ("temperature_c", "temperature", "C"),
            ("cpu_clock_mhz", "cpu_clock", "MHz"),
        ):
            values = [float(turn.clocks[key]) for turn in self._turns if key in turn.clocks]
            if values:
                found.append(metrics.plain(name, unit, statistics.median(values)))
        energies = [turn.energy_mj_a_call for turn in self._turns if turn.energy_mj_a_call]
        if energies:
            found.append(metrics.of_processes("energy_per_call", "mJ", energies, better="lower"))
        return found


def _times(turns: list[Turn]) -> tuple[float, ...]:
    return tuple(burst.time_us for turn in turns for burst in turn.bursts)


def _hidden_us(rounds: list[tuple[list[Turn], list[Turn]]]) -> float:
    """One pair: us of a burst that the clock sees and the events don't, head less base; the median over its rounds."""
    return statistics.median(_mean(head, _surplus) - _mean(base, _surplus) for head, base in rounds)


def _mean(turns: list[Turn], of: Callable[[Burst], float]) -> float:
    return statistics.fmean(of(burst) for turn in turns for burst in turn.bursts)


def _claimed(burst: Burst) -> float:
    return burst.clock_us if burst.claimed_us is None else burst.claimed_us


def _surplus(burst: Burst) -> float:
    return burst.clock_us - _claimed(burst)
