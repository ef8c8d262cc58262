"""Timed samples of a comparison: the evidence that verdict/ judges and the service keeps."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from contract.base import Model


def _named(value: Any) -> Any:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


# A name or a number: other harnesses count their processes.
ProcessId = Annotated[str, BeforeValidator(_named)]


class Round(Model):
    """One balanced round: the bursts of each side, time per call."""

    base: tuple[float, ...]
    head: tuple[float, ...]


class Pair(Model):
    """One head process beside one base process. Without process ids each is a fresh one."""

    rounds: tuple[Round, ...]
    base_process: ProcessId | None = None
    head_process: ProcessId | None = None


class Comparison(Model):
    """The input of a verdict."""

    unit: str
    allowed_slowdown: float = Field(gt=0, lt=1)
    pairs: tuple[Pair, ...]
    better: Literal["lower", "higher"] = "lower"
    spread_floor: float | None = Field(
        default=None, ge=0, allow_inf_nan=False, description="sd of ln(head/base) between process pairs"
    )
    seed: int = 0
    look: Literal[1, 2, 3] | None = None
