"""What the machine code says of its functions, for one architecture each, and of all of them together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, get_args

from pydantic import Field

from contract.base import Model

InstructionClass = Literal[
    "mma",
    "wgmma",
    "tcgen05_mma",
    "async_copy",
    "bulk_copy",
    "special_function",
    "barrier",
    "local_load",
    "local_store",
]
StaticMetric = Literal[
    "registers",
    "spill_bytes",
    "spill_store_bytes",
    "spill_load_bytes",
    "stack_bytes",
    "shared_bytes",
    "static_shared_bytes",
    "dynamic_shared_bytes",
    "code_bytes",
    "mma_instructions",
    "wgmma_instructions",
    "tcgen05_mma_instructions",
    "async_copy_instructions",
    "bulk_copy_instructions",
    "special_function_instructions",
    "barrier_instructions",
    "local_load_instructions",
    "local_store_instructions",
]
STATIC_METRICS: tuple[StaticMetric, ...] = get_args(StaticMetric)
INSTRUCTION_CLASSES: tuple[InstructionClass, ...] = get_args(InstructionClass)
_INSTRUCTIONS = "_instructions"
METRIC_OF: dict[InstructionClass, StaticMetric] = {
    name: metric for name in INSTRUCTION_CLASSES for metric in STATIC_METRICS if metric == f"{name}{_INSTRUCTIONS}"
}

# Each function has them for itself; everything else adds up.
_OF_THE_LARGEST: frozenset[StaticMetric] = frozenset(
    {"registers", "stack_bytes", "shared_bytes", "static_shared_bytes", "dynamic_shared_bytes"}
)
_SUMS: dict[StaticMetric, tuple[str, str]] = {
    "spill_bytes": ("spill_store_bytes", "spill_load_bytes"),
    "shared_bytes": ("static_shared_bytes", "dynamic_shared_bytes"),
}


class InstructionCounts(Model):
    """How many instructions of each class stand in the code: not how often they run.

    Tensor-core products by generation are `mma` (of a warp: HMMA, IMMA and the like), `wgmma` (of a warpgroup: HGMMA)
    and `tcgen05_mma` (of tensor memory: UTCHMMA). `async_copy` is LDGSTS, `bulk_copy` the bulk and tensor copies of
    TMA, `special_function` MUFU; `barrier` counts barriers of a block, of a cluster and in shared memory.
    """

    mma: int = Field(default=0, ge=0)
    wgmma: int = Field(default=0, ge=0)
    tcgen05_mma: int = Field(default=0, ge=0)
    async_copy: int = Field(default=0, ge=0)
    bulk_copy: int = Field(default=0, ge=0)
    special_function: int = Field(default=0, ge=0)
    barrier: int = Field(default=0, ge=0)
    local_load: int = Field(default=0, ge=0)
    local_store: int = Field(default=0, ge=0)


class FunctionStatics(Model):
    """`dynamic_shared_bytes` is of the largest launch, None where none is known; `instructions` None where nobody can
    read them (a CPU's, or an architecture's that is not known)."""

    function: str
    architecture: str
    registers: int | None = None
    spill_store_bytes: int | None = None
    spill_load_bytes: int | None = None
    stack_bytes: int | None = None
    static_shared_bytes: int | None = None
    dynamic_shared_bytes: int | None = None
    code_bytes: int | None = None
    instructions: InstructionCounts | None = None

    @property
    def shared_bytes(self) -> int | None:
        return self.value("shared_bytes")

    def value(self, metric: StaticMetric) -> int | None:
        """None where nobody said it, or one of the parts of it."""
        if metric.endswith(_INSTRUCTIONS):
            counted: int | None = getattr(self.instructions, metric.removesuffix(_INSTRUCTIONS), None)
            return counted
        parts = [getattr(self, name) for name in _SUMS.get(metric, (metric,))]
        return None if None in parts else sum(parts)


def static_value(statics: Iterable[FunctionStatics], metric: StaticMetric) -> int | None:
    """Over the functions of one architecture: the largest, or the sum; None where no function says it."""
    values = [value for each in statics if (value := each.value(metric)) is not None]
    if not values:
        return None
    return max(values) if metric in _OF_THE_LARGEST else sum(values)


def by_architecture(statics: Sequence[FunctionStatics]) -> dict[str, list[FunctionStatics]]:
    """In the order in which each is met first."""
    found: dict[str, list[FunctionStatics]] = {}
    for each in statics:
        found.setdefault(each.architecture, []).append(each)
    return found


def unit_of(metric: StaticMetric) -> str:
    return "B" if metric.endswith("_bytes") else "1"
