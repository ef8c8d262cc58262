"""Errors that people see: what was wrong, where, and what to do; and the exit codes."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """What scripts may rely on."""

    OK = 0
    JUDGED_BAD = 1
    USAGE = 2
    NOT_MEASURED = 3
    INTERRUPTED = 130


class CliError(Exception):
    """`message` names what and where, `hint` what to do about it."""

    def __init__(self, message: str, *, hint: str | None = None, code: Exit = Exit.USAGE) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.code = code


class ProblemError(CliError):
    """The service answered a problem. `kind` is the last part of its `type`: `unknown-kernel`."""

    def __init__(
        self, message: str, *, kind: str, status: int, hint: str | None = None, code: Exit = Exit.USAGE
    ) -> None:
        super().__init__(message, hint=hint, code=code)
        self.kind = kind
        self.status = status
