"""What goes wrong while judging, and whose it is."""

from __future__ import annotations

from contract.names import CaseId
from contract.outcomes import Reason
from contract.report import MAX_MESSAGE

_MESSAGE = MAX_MESSAGE // 2


class FaultError(Exception):
    """A revision or the baseline failed in a case. `side`: head, base or baseline.

    The message may quote a submission: what steers terminals is taken out, and what is too long for a report cut off.
    """

    def __init__(self, reason: Reason, message: str, *, side: str, case: CaseId | None = None) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = "".join(char for char in message[:_MESSAGE] if char == "\n" or char.isprintable())
        self.side = side
        self.case = case


# The process is gone or can't be used for another call.
FATAL = frozenset({Reason.CRASHED, Reason.TIMED_OUT, Reason.LEFT_RUNNING, Reason.OUT_OF_MEMORY, Reason.INTERNAL_ERROR})
# The judge's own or the machine's: never the kernel's, whoever shows it.
OWN = frozenset({Reason.OUT_OF_MEMORY, Reason.INTERNAL_ERROR, Reason.DEVICE_UNHEALTHY})
