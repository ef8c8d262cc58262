"""A look into a burst: calls are made one after the other, so at any time all but one are finished or not begun.

On a CPU the process that makes the calls runs host code of the submission, which could do several calls at once, or put
them off and do all of them with the last. Outputs and time of the whole burst don't show it; the middle of it does.
"""

from __future__ import annotations

from random import Random
from typing import Any

from contract.outcomes import Reason
from worker.judge.bursts import Subject, start_burst
from worker.judge.faults import FaultError
from worker.judge.slots import Slots
from worker.launch.client import Launcher, Pause

_TRIES = 3
# A call may write nothing until its end, and calls differ a little.
_LEAST_SHARE, _UNSEEN_CALLS = 1 / 3, 1


class Watch:
    """One look, `after_us` into a burst."""

    def __init__(self, launcher: Launcher, slots: Slots, *, after_us: float) -> None:
        self._launcher, self._slots, self._after_us = launcher, slots, after_us
        self._computed_s: list[float] = []
        self._begun: list[bool] = []
        self._finished: list[int] = []
        self._copies: list[Any] = []

    def over(self, order: list[int]) -> Pause:
        self._computed_s = [self._launcher.cpu_s()]

        def look() -> None:
            self._computed_s.append(self._launcher.cpu_s())
            self._begun = [self._slots.begun(slot) for slot in order]
            # The last one that was begun may be at work.
            self._finished = order[: max(0, sum(self._begun) - 1)]
            self._copies = [view[self._finished].copy() for view in self._slots.outputs]

        return Pause(after_s=self._after_us / 1e6, look=look)

    def problem(self) -> str | None:
        """After the burst."""
        if sum(self._begun) != next((at for at, begun in enumerate(self._begun) if not begun), len(self._begun)):
            return "a call had begun before the one that comes first"
        for copies, view in zip(self._copies, self._slots.outputs, strict=False):
            if not self._slots.same_bits(copies, view[self._finished]):
                return "a call was still at work when the next one had begun"
        return None

    def behind(self) -> bool:
        """After the burst: whether far fewer calls had begun than the share that had been computed."""
        if not self._begun:
            return False
        before, looked, after = (*self._computed_s, self._launcher.cpu_s())
        share = (looked - before) / max(after - before, 1e-9)
        return sum(self._begun) + _UNSEEN_CALLS < _LEAST_SHARE * share * len(self._begun)


def watch_burst(
    subject: Subject,
    launcher: Launcher,
    slots: Slots,
    *,
    side: str,
    where: slice,
    calls: int,
    random: Random,
    time_us: float,
) -> None:
    """A burst like any other, but for a moment in it when all stands still. Raises FaultError."""

    def fault(words: str) -> FaultError:
        return FaultError(Reason.CALLS_OVERLAP, f"in a burst of {calls} calls {words}", side=side, case=subject.case)

    for _ in range(_TRIES):
        watch = Watch(launcher, slots, after_us=calls * time_us * random.uniform(0.5, 0.9))
        _, check = start_burst(
            subject, launcher, slots, side=side, where=where, calls=calls, random=random, watch=watch.over
        )
        if (problem := watch.problem()) is not None:
            raise fault(problem)
        check.everything()
        if not watch.behind():
            return
    raise fault(f"few or none had written anything when most was computed, {_TRIES} times: they are put off")
