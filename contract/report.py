"""What a worker reports of one attempt."""

from __future__ import annotations

import math
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, field_validator

from contract.base import Finite, Model
from contract.devices import DeviceClass
from contract.names import CaseId, Digest, MetricName
from contract.outcomes import Reason, Stage
from contract.samples import Pair
from contract.statics import FunctionStatics
from contract.verdicts import Judgement

MAX_MESSAGE = 8_000
MAX_LOG_BYTES = 1 << 20


class StageTime(Model):
    """`own_s` is what the worker itself spent, beside recording, verifying and measuring."""

    stage: Stage
    started_at: datetime
    ended_at: datetime
    cached: bool = False
    detail: str = Field(default="", max_length=300)


class LeftOut(Model):
    """A stage, or a part of it, that this node could not or was not asked to do."""

    stage: Stage
    why: str = Field(max_length=1000)


class Failure(Model):
    """Why the attempt did not pass. The outcome follows from the reason (`OUTCOME_OF`)."""

    reason: Reason
    stage: Stage
    message: str = Field(max_length=MAX_MESSAGE)
    case: CaseId | None = None


class Metric(Model):
    """One value with its interval; `samples` are the values it was made from, where they are kept."""

    name: MetricName
    unit: str = Field(max_length=32)
    value: Finite
    low: Finite | None = None
    high: Finite | None = None
    better: Literal["lower", "higher"] | None = None
    samples: tuple[Finite, ...] = ()


def _bounded(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


# Of an output that is NaN, or of a bound of zero, the error has no measure.
Measure = Annotated[Finite | None, BeforeValidator(_bounded)]


class Check(Model):
    """One verification: the worst error as a share of its bound (1 is the bound)."""

    case: CaseId
    family: str = Field(max_length=64)
    passed: bool
    error: Measure = None
    bound: Measure = None
    of_bound: Measure = None
    reason: Reason | None = None
    message: str = Field(default="", max_length=MAX_MESSAGE)


class CaseResult(Model):
    case: CaseId
    skipped: str | None = Field(default=None, description="why the revision's constraints refuse this case")
    base_skipped: str | None = None
    metrics: tuple[Metric, ...] = ()
    baseline: str | None = Field(default=None, description="library, backend and version")
    pairs: tuple[Pair, ...] = ()
    same_artifact: bool = False
    power_capped: bool = False
    spread_floor: Annotated[Finite, Field(ge=0)] | None = None
    judgement: Judgement | None = None
    held_s: Finite | None = Field(default=None, description="seconds that the card was held")

    @field_validator("pairs")
    @classmethod
    def _times_are_finite(cls, pairs: tuple[Pair, ...]) -> tuple[Pair, ...]:
        """A judge's clocks gave them, unlike samples from elsewhere."""
        for place, pair in enumerate(pairs, start=1):
            for each in pair.rounds:
                if not all(map(math.isfinite, (*each.base, *each.head))):
                    raise ValueError(f"a time of pair {place} is not finite")
        return pairs


class Environment(Model):
    """Where it was measured. `segment` fields start a new segment of a history when they change."""

    device: str
    device_uuid: str | None = None
    driver: str | None = None
    cuda: str | None = None
    toolchain: dict[str, str] = {}
    libraries: dict[str, str] = {}
    clocks: dict[str, str | float | bool] = {}
    cpu: str | None = None
    host_cores: int | None = None
    sandbox: bool = False

    @field_validator("clocks")
    @classmethod
    def _readings_are_finite(cls, clocks: dict[str, str | float | bool]) -> dict[str, str | float | bool]:
        for name, value in clocks.items():
            if isinstance(value, float) and not math.isfinite(value):
                raise ValueError(f"{name} is not finite")
        return clocks


class Report(Model):
    protocol_version: int
    device_class: DeviceClass
    artifact_digest: Digest | None = None
    failure: Failure | None = None
    built_only: bool = False
    stages: tuple[StageTime, ...] = ()
    left_out: tuple[LeftOut, ...] = Field(default=(), max_length=16)
    statics: tuple[FunctionStatics, ...] = ()
    base_statics: tuple[FunctionStatics, ...] = Field(default=(), description="empty where the base was not built")
    checks: tuple[Check, ...] = ()
    cases: tuple[CaseResult, ...] = ()
    environment: Environment | None = None
    log: str = Field(default="", max_length=MAX_LOG_BYTES)
