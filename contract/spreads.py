"""What identical, trusted code is apart on a node: the ground that spread floors stand on."""

from __future__ import annotations

from pydantic import AwareDatetime, Field

from contract.base import Model
from contract.names import CaseId, KernelName


class Spread(Model):
    """One shipped kernel measured against itself. `sd`: of ln(head/base) between pairs of fresh processes."""

    kernel: KernelName
    case: CaseId
    time_us: float = Field(gt=0, allow_inf_nan=False)
    bytes_a_call: float = Field(ge=0, allow_inf_nan=False)
    capped: bool = Field(description="whether the card reported a power cap")
    sd: float = Field(ge=0, le=100)
    pairs: int = Field(ge=2, le=1_000_000)
    measured_at: AwareDatetime
