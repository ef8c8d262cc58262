"""What the machine code of two revisions says, where one toolchain built both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlmodel import Session, col

from contract.devices import DeviceClass
from contract.statics import FunctionStatics
from service.metrics import TRUSTED
from service.models import Evaluation, Revision

# What makes a GPU's machine code; the host's compiler has no part in it.
_OF_A_GPU = ("nvcc", "triton")


class MachineCode(NamedTuple):
    """`statics`: the head's. `statics_apart`: why there is nothing of the base's beside it."""

    statics: tuple[FunctionStatics, ...]
    base_statics: tuple[FunctionStatics, ...]
    statics_apart: str | None


def compilers_of(environment: Mapping[str, Any] | None) -> dict[str, str]:
    """Name -> version of what decides an evaluation's machine code."""
    toolchain: Mapping[str, str] = (environment or {}).get("toolchain") or {}
    return {name: toolchain[name] for name in _OF_A_GPU if name in toolchain} or dict(toolchain)


def machine_code(session: Session, *, base: Revision, head: Revision, device_class: DeviceClass) -> MachineCode:
    """Of the newest evaluation that built both, else of the newest two whose compilers are the same."""
    heads, bases = (_built(session, revision, device_class) for revision in (head, base))
    for row in heads:
        if row.base_id == base.id and row.base_statics:
            return MachineCode(_read(row.statics), _read(row.base_statics), None)
    for one, other in product(heads, bases):
        if compilers_of(one.environment) == compilers_of(other.environment):
            return MachineCode(_read(one.statics), _read(other.statics), None)
    apart = None
    if heads and bases:
        built = [f"{revision.label} by {_words(rows[0])}" for revision, rows in ((base, bases), (head, heads))]
        apart = f"built by different toolchains: {', '.join(built)}"
    return MachineCode(_read(heads[0].statics) if heads else (), (), apart)


def _built(session: Session, revision: Revision, device_class: DeviceClass) -> Sequence[Any]:
    """Evaluations whose machine code counts, newest first."""
    query = (
        sa.select(
            col(Evaluation.base_id),
            col(Evaluation.outcome),
            col(Evaluation.environment),
            col(Evaluation.statics),
            col(Evaluation.base_statics),
        )
        .where(col(Evaluation.revision_id) == revision.id, col(Evaluation.device_class) == device_class)
        .order_by(col(Evaluation.id).desc())
    )
    return [row for row in session.execute(query) if row.statics and row.outcome in TRUSTED]


def _read(statics: Sequence[Any]) -> tuple[FunctionStatics, ...]:
    return tuple(FunctionStatics.model_validate(each) for each in statics)


def _words(row: Any) -> str:
    return " and ".join(f"{name} {version}" for name, version in compilers_of(row.environment).items()) or "unknown"
