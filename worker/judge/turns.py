"""A turn: one launcher's bursts between two switches, the arena mapped by it alone."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random

from contract.names import CaseId
from contract.outcomes import Reason
from worker.judge.bursts import Burst, BurstCheck, Subject, run_burst, start_burst
from worker.judge.faults import FaultError
from worker.judge.plan import CAPPED_TURN_US, Plan
from worker.judge.slots import Slots
from worker.judge.watch import watch_burst
from worker.launch.client import Launcher, LauncherError
from worker.protocol import Attach, Detach

_WATCHED_CALLS = 4  # fewer can't be told from one long one
_CAPPED_CHECKS = 8  # bursts of a capped turn, at secret places, whose rows are checked; the last one is checked whole


@dataclass(frozen=True)
class Player:
    """Who takes turns in a case: head, base or baseline, by its launcher and the slots of its layout."""

    side: str
    launcher: Launcher
    slots: Slots
    check_outputs: bool = True


@dataclass(frozen=True)
class Turn:
    bursts: tuple[Burst, ...]
    clocks: dict[str, str | float | bool] = field(default_factory=dict)
    energy_mj_a_call: float | None = None

    @property
    def time_us(self) -> float:
        return statistics.median(burst.time_us for burst in self.bursts)


@contextmanager
def attached(player: Player, subject: Subject) -> Iterator[None]:
    """The player has the arena, with its guards laid."""
    limit = subject.call_limit_s
    try:
        player.launcher.ask(Attach(), limit_s=limit)
    except LauncherError as error:
        raise _fault(error, player.side, subject.case) from error
    player.slots.lay_guards()
    yield
    try:
        player.launcher.ask(Detach(), limit_s=limit)
    except LauncherError as error:
        raise _fault(error, player.side, subject.case) from error


def lone_call(subject: Subject, player: Player, random: Random) -> Burst:
    """A call that has no neighbour; in a fresh process it is the first."""
    where = slice(0, 2 if player.slots.count > 1 else 1)
    with attached(player, subject):
        return _burst(subject, player, where, 1, random)


def take_turn(
    subject: Subject, player: Player, plan: Plan, bursts: int, random: Random, *, watch_us: float | None = None
) -> Turn:
    """A throw-away burst on slots of its own, then the timed ones.

    With `watch_us` (what a call takes; 0 where that is not known yet) one more burst, at a secret place among them, is
    looked into and not timed.
    """
    pool = slice(0, plan.pool)
    watched = (
        -1 if watch_us is None or plan.calls < _WATCHED_CALLS else random.randrange(0 if watch_us else 1, bursts + 1)
    )
    taken: list[Burst] = []
    with attached(player, subject):
        if plan.warm_calls:
            _burst(subject, player, slice(plan.pool, plan.slots), plan.warm_calls, random)
        for place in range(bursts + 1):
            if place == watched:
                watch_burst(
                    subject,
                    player.launcher,
                    player.slots,
                    side=player.side,
                    where=pool,
                    calls=_calls(subject, plan, random),
                    random=random,
                    time_us=watch_us or taken[-1].time_us,
                )
            if place < bursts:
                taken.append(_burst(subject, player, pool, _calls(subject, plan, random), random))
        return Turn(bursts=tuple(taken), clocks=subject.device.clocks())


def _calls(subject: Subject, plan: Plan, random: Random) -> int:
    """Where host code of a submission makes the calls, it shall not know which one is the last."""
    if subject.device.measures_itself:
        return plan.calls
    return plan.calls - random.randrange(plan.calls // 8 + 1)


def take_capped_turn(
    subject: Subject, player: Player, plan: Plan, random: Random, *, turn_us: float = CAPPED_TURN_US
) -> Turn:
    """Bursts back to back for half a second, so that the power state is this side's own; the first half is discarded.

    Between bursts the inputs are drawn and the checks' rows copied, no more; the rest is checked after the turn. Which
    bursts' rows are checked is drawn then: a kernel that is wrong in one burst of twenty, wherever, passes a turn 11
    times in 20 and eight turns one time in 120.
    """
    bursts: list[Burst] = []
    checks: list[BurstCheck] = []
    busy = 0.0
    halfway_mj: float | None = None
    halfway = 0
    with attached(player, subject):
        while busy < turn_us:
            burst, check = start_burst(
                subject,
                player.launcher,
                player.slots,
                side=player.side,
                where=slice(0, plan.pool),
                calls=plan.calls,
                random=random,
                check_outputs=player.check_outputs,
            )
            bursts.append(burst)
            checks.append(check)
            busy += burst.clock_us
            if not halfway and busy >= turn_us / 2:
                halfway, halfway_mj = len(bursts), subject.device.energy_mj()
        clocks, end_mj = subject.device.clocks(), subject.device.energy_mj()
        checks[-1].everything()
        for check in random.sample(checks[:-1], min(_CAPPED_CHECKS, len(checks) - 1)):
            check.rows_later()
    kept = bursts[halfway:] or bursts[-1:]
    energy = None
    if halfway_mj is not None and end_mj is not None and bursts[halfway:]:
        energy = (end_mj - halfway_mj) / sum(burst.calls for burst in kept)
    return Turn(bursts=tuple(kept), clocks=clocks, energy_mj_a_call=energy)


def _burst(subject: Subject, player: Player, where: slice, calls: int, random: Random) -> Burst:
    return run_burst(
        subject,
        player.launcher,
        player.slots,
        side=player.side,
        where=where,
        calls=calls,
        random=random,
        check_outputs=player.check_outputs,
    )


def _fault(error: LauncherError, side: str, case: CaseId) -> FaultError:
    reason = Reason.BASELINE_FAILED if side == "baseline" else error.reason
    return FaultError(reason, str(error), side=side, case=case)
