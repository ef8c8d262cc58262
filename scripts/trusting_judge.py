"""The worker's judge as one that trusts what it times: `scripts/sandbox_cost.py` tells by it what the checks cost.

It verifies like the other. When it measures, inputs are drawn once for a case's slots; there are neither poison nor
guards, and nothing is looked at before, in or after a burst. A pair has one round, or more of them would fit into the
time that checks take. With --checked it makes all checks, and has one round as well.

    KERNELGATE_JUDGE='["scripts/trusting_judge.py"]'
"""

from __future__ import annotations

import sys
from random import Random
from typing import Any

from worker.judge import __main__ as program
from worker.judge import measure, turns
from worker.judge.bursts import Burst, Subject
from worker.judge.case import CaseRun
from worker.judge.faults import FaultError
from worker.judge.slots import Slots
from worker.launch.client import Launcher, LauncherError
from worker.protocol import Prepare


class TrustedSlots(Slots):
    drawn_once = False

    def lay_guards(self) -> None:
        """There are none."""

    def draw_all(self) -> None:
        if not self.drawn_once:
            self.draw(slice(0, self.count))
            self.drawn_once = True


class NoCheck:
    def everything(self) -> None:
        """Nothing is checked."""

    rows_later = everything


def start_burst(
    subject: Subject,
    launcher: Launcher,
    slots: TrustedSlots,
    *,
    side: str,
    where: slice,
    calls: int,
    random: Random,
    check_outputs: bool = True,
) -> tuple[Burst, NoCheck]:
    del check_outputs
    order = random.sample(range(where.start, where.stop), calls)
    try:
        launcher.ask(Prepare(slots=tuple(order)), limit_s=subject.call_limit_s)
        slots.draw_all()
        subject.device.synchronize()
        reply, clock_us = launcher.go(limit_s=subject.call_limit_s)
    except LauncherError as error:
        raise FaultError(error.reason, str(error), side=side, case=subject.case) from error
    claimed_us = reply.elapsed_us if subject.device.measures_itself else None
    return Burst(calls=calls, claimed_us=claimed_us, clock_us=clock_us), NoCheck()


def run_burst(*arguments: Any, **named: Any) -> Burst:
    return start_burst(*arguments, **named)[0]


def nothing(*_: Any, **__: Any) -> None:
    """In the place of what looks into a burst, or at the clocks afterwards."""


REPLACED = (
    (measure, "Slots", TrustedSlots),
    (turns, "start_burst", start_burst),
    (turns, "run_burst", run_burst),
    (turns, "watch_burst", nothing),
    (CaseRun, "audit", nothing),
)
setattr(measure, "_MOST_ROUNDS", 1)  # noqa: B010
if "--checked" not in sys.argv[1:]:
    for where, name, replacement in REPLACED:
        setattr(where, name, replacement)

if __name__ == "__main__":
    program.main()
