"""What a verdict says. Ratios are time_head / time_base everywhere."""

from __future__ import annotations

from contract.base import Model
from contract.outcomes import Verdict


class Judgement(Model):
    verdict: Verdict
    ratio: float | None
    interval: tuple[float, float] | None
    smallest_detectable: float | None
    reason: str
