"""How a stage says that it can't go on."""

from __future__ import annotations

from contract.outcomes import Reason, Stage
from contract.report import MAX_MESSAGE, Failure


class Failed(Exception):  # noqa: N818 - the contract's word
    """A side of the evaluation failed in a stage, for a stable reason."""

    def __init__(self, reason: Reason, stage: Stage, message: str, *, case: str | None = None) -> None:
        super().__init__(message)
        self.failure = Failure(reason=reason, stage=stage, message=message[:MAX_MESSAGE], case=case)

    def on(self, architecture: str | None) -> Failed:
        """The same, with what was compiled for where the message doesn't name it."""
        failure = self.failure
        named = failure.message if architecture is None or architecture in failure.message else None
        return Failed(failure.reason, failure.stage, named or f"for {architecture}: {failure.message}")

    def as_base(self, label: str) -> Failed:
        """The same for the base: never the head's fault."""
        failure = self.failure
        message = f"the base {label} failed ({failure.reason}): {failure.message}"
        return Failed(Reason.BASE_FAILED, failure.stage, message, case=failure.case)
