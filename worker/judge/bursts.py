"""One burst: calls on a secret subset of freshly drawn slots in secret order, timed and checked."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

from contract.names import CaseId
from contract.outcomes import Reason
from worker.judge.device import Device
from worker.judge.faults import FaultError
from worker.judge.slots import Slots
from worker.launch.client import Launcher, LauncherError, Pause, end_strays
from worker.operators.base import Compared, Dims, Numerics, Operator
from worker.protocol import Prepare

_QUIET_LIMIT_S = 3.0


@dataclass(frozen=True)
class Subject:
    """What is called: an operator's case, on a device, and how its numbers are judged."""

    device: Device
    operator: Operator
    case: CaseId
    dims: Dims
    how: Numerics
    call_limit_s: float


@dataclass(frozen=True)
class Burst:
    """`claimed_us`: of all calls, by the launcher's events; `clock_us`: by the judge's clock, start-up included.
    `watched_us`: of one call at a secret place, by events around it."""

    calls: int
    claimed_us: float | None
    clock_us: float
    watched_us: float | None = None

    @property
    def time_us(self) -> float:
        """T(n) / n."""
        return (self.clock_us if self.claimed_us is None else self.claimed_us) / self.calls

    @property
    def clock_time_us(self) -> float:
        return self.clock_us / self.calls


@dataclass(frozen=True)
class BurstCheck:
    """What is to be checked after a burst. `copies`: the outputs' chosen rows; None where outputs are not read."""

    subject: Subject
    slots: Slots
    side: str
    where: slice
    order: list[int]
    chosen: Any
    copies: Any
    drawn: tuple[slice, list[list[int]]]
    random: Random

    def everything(self) -> None:
        """Before the next draw: guards, poison, inputs, the chosen rows, and all outputs at once."""
        subject, slots = self.subject, self.slots
        launched = set(self.order)
        untouched = [slot for slot in range(self.where.start, self.where.stop) if slot not in launched]
        check_surroundings(slots, where=self.where, untouched=untouched, side=self.side, case=subject.case)
        if (name := slots.modified_input()) is not None:
            raise FaultError(Reason.INPUT_MODIFIED, f"input {name} was modified", side=self.side, case=subject.case)
        if self.copies is None:
            return
        self._rows()
        whole = subject.operator.compare_whole(
            subject.how, slots.inputs, slots.outputs, slots=self.order, dims=subject.dims, random=self.random
        )
        if whole is not None:
            check_values(whole, side=self.side, case=subject.case, when="in a timed call")

    def rows_later(self) -> None:
        """At any time: the copied rows against inputs that are drawn again."""
        if self.copies is not None:
            self.slots.draw_again(*self.drawn)
            self._rows()

    def _rows(self) -> None:
        subject = self.subject
        sampled = subject.operator.compare_sampled(
            subject.how, self.slots.inputs, self.copies, self.chosen, subject.dims
        )
        check_values(sampled, side=self.side, case=subject.case, when="in a timed call")


def run_burst(
    subject: Subject,
    launcher: Launcher,
    slots: Slots,
    *,
    side: str,
    where: slice,
    calls: int,
    random: Random,
    check_outputs: bool = True,
) -> Burst:
    """Run `calls` calls on a secret subset of the slots `where`, and check them.

    The order matters: what is to be called is made ready before the inputs exist, so that between their draw and the
    start of the clock nothing can be done with them.
    """
    burst, check = start_burst(
        subject, launcher, slots, side=side, where=where, calls=calls, random=random, check_outputs=check_outputs
    )
    check.everything()
    return burst


def start_burst(
    subject: Subject,
    launcher: Launcher,
    slots: Slots,
    *,
    side: str,
    where: slice,
    calls: int,
    random: Random,
    check_outputs: bool = True,
    watch: Callable[[list[int]], Pause] | None = None,
) -> tuple[Burst, BurstCheck]:
    """Like run_burst, with the checks still to be made: all of them before the next draw, or the rows at any time.

    `watch` is told the order of the calls, and gives the pause in which it looks.
    """
    device, operator = subject.device, subject.operator
    order = random.sample(range(where.start, where.stop), calls)
    chosen = operator.choose(random, subject.dims, order)

    def fault(error: LauncherError) -> FaultError:
        return FaultError(error.reason, str(error), side=side, case=subject.case)

    try:
        watched = random.randrange(calls) if device.measures_itself else None
        launcher.ask(Prepare(slots=tuple(order), watched=watched), limit_s=subject.call_limit_s)
        slots.draw(where)
        slots.poison(where)
        device.synchronize()
        await_quiet(device)
        reply, clock_us = launcher.go(limit_s=subject.call_limit_s, pause=watch(order) if watch else None)
    except LauncherError as error:
        raise fault(error) from error
    # Before anything else: what is right now must have been right when the call was done.
    copies = operator.snapshot(subject.how, slots.outputs, chosen) if check_outputs else None
    device.synchronize()
    await_quiet(device)
    check = BurstCheck(
        subject=subject,
        slots=slots,
        side=side,
        where=where,
        order=order,
        chosen=chosen,
        copies=copies,
        drawn=slots.drawn,
        random=random,
    )
    # On a CPU the answer is the submission's: what it claims is nothing.
    claimed_us, watched_us = (reply.elapsed_us, reply.watched_us) if device.measures_itself else (None, None)
    return Burst(calls=calls, claimed_us=claimed_us, clock_us=clock_us, watched_us=watched_us), check


def check_surroundings(slots: Slots, *, where: slice, untouched: list[int], side: str, case: CaseId) -> None:
    """Guards hold their pattern, and slots that were not launched their poison."""
    if (broken := slots.broken_guard(where)) is not None:
        raise FaultError(Reason.OUT_OF_BOUNDS_WRITE, f"outside its tensors {broken}", side=side, case=case)
    if slots.spoiled(untouched):
        raise FaultError(
            Reason.UNTOUCHED_SLOT_WRITTEN, "a call wrote into another call's tensors", side=side, case=case
        )


def check_values(compared: Compared, *, side: str, case: CaseId, when: str) -> None:
    if compared.passed:
        return
    raise FaultError(reason_of(compared), f"{words(compared)} {when}", side=side, case=case)


def reason_of(compared: Compared) -> Reason:
    return Reason.NAN_VALUES if compared.nan else Reason.WRONG_VALUES


def words(compared: Compared) -> str:
    if compared.nan:
        return "NaN or values never written"
    return f"wrong values ({compared.what}): error {compared.error:.3g}, bound {compared.bound:.3g}"


def await_quiet(device: Device) -> None:
    """Probe until nothing but the judge runs. What a submission left behind is ended; else it's the machine's fault."""
    if device.quiet():
        return
    end_strays()
    deadline = time.monotonic() + _QUIET_LIMIT_S
    while not device.quiet():
        if time.monotonic() > deadline:
            raise FaultError(Reason.DEVICE_UNHEALTHY, "something else is running on the device", side="device")
