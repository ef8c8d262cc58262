"""What identical, trusted code is apart on a node: the ground that spread floors stand on."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from contract.base import Model
from contract.names import CaseId, KernelName


class Spread(Model):
    """One shipped kernel measured against itself. `sd`: of ln(head/base) between pairs of fresh processes."""

    kernel: KernelName
    case: CaseId
    time_us: float = Field(gt=0)
    bytes_a_call: float = Field(ge=0)
    capped: bool = Field(description="whether the card reported a power cap")
    sd: float = Field(ge=0)
    pairs: int = Field(ge=2)
    measured_at: datetime
