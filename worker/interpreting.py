"""Verifies a Triton revision without a card: by Triton's interpreter, under the real judge, on cases that are small."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from contract.devices import DeviceClass
from contract.outcomes import Reason, Stage
from contract.suite import Case, Suite
from worker.building import BuiltSide
from worker.judging import Judged, judge
from worker.operators import operator_of_suite, tensors_of
from worker.protocol import InterpretedArtifact, Side
from worker.room import Room
from worker.settings import WorkerSettings

# Of one call of every case together: attention of 4 heads, seqlen 256 and head_dim 128 is half of it, and takes a
# quarter of a second. With 9 input families, one of them called twice, verifying stays near ten seconds.
MOST_FLOPS = 2.0**27
# Where little is computed with each byte, moving them is what takes the interpreter's time.
_FLOPS_A_BYTE = 16
_NAMED = 6  # cases that are listed by name


@dataclass(frozen=True)
class Chosen:
    """`suite`: None where no case is small enough. `why`: what is left out, in words; None where nothing is."""

    suite: Suite | None
    why: str | None


def chosen_cases(suite: Suite, refused: dict[str, str]) -> Chosen:
    """The smallest cases, as many as fit; verified alone or timed too."""
    operator = operator_of_suite(suite)

    def cost(case: Case) -> float:
        moved = sum(tensor.bytes for tensor in tensors_of(suite, case))
        return max(operator.flops(case.dims), float(_FLOPS_A_BYTE * moved))

    every = {case.id: case for case in (*suite.verify_cases, *suite.cases) if case.id not in refused}
    kept: list[Case] = []
    spent = 0.0
    for case in sorted(every.values(), key=cost):
        spent += cost(case)
        if spent > MOST_FLOPS:
            break
        kept.append(case)
    large = [case_id for case_id in every if case_id not in {case.id for case in kept}]
    why = None
    if large:
        listed = "; ".join(large[:_NAMED]) + ("; ..." if len(large) > _NAMED else "")
        why = f"{len(large)} of {len(every)} cases are too large for Triton's interpreter: {listed}"
    if not kept:
        return Chosen(suite=None, why=why or "the suite has no case to verify")
    # As cases of their own: what is left out is neither verified nor named by anything in the suite.
    smaller = {"cases": tuple(kept), "verify_cases": (), "allowances": (), "predictions": ()}
    return Chosen(suite=suite.model_copy(update=smaller), why=why)


def interpret(
    side: BuiltSide,
    *,
    suite: Suite,
    room: Room,
    settings: WorkerSettings,
    into: Judged,
    on_progress: Callable[[Stage, int, int, str], None],
) -> str | None:
    """Fills `into`; answers why something was left out, or None. Raises Failed, process.Cancelled."""
    chosen = chosen_cases(suite, side.refused)
    if chosen.suite is None:
        return chosen.why
    judge(
        Side(
            label=side.ref.label,
            artifact_digest=side.key,
            artifact=InterpretedArtifact(source=str(side.bundle / (side.built.source or "")), entry=side.built.entry),
            refused=side.refused,
        ),
        None,
        suite=chosen.suite,
        device_class=DeviceClass.CPU,
        room=room,
        settings=settings,
        into=into,
        on_progress=on_progress,
        measure=False,
        call_limit_s=settings.interpret_limit_s,
    )
    if into.failure is None or into.failure.reason is not Reason.CASE_REFUSED:
        return chosen.why
    # The interpreter lacks something that the card has: no fault of the revision's, and no verification either.
    why, into.failure = into.failure.message, None
    into.checks = [check for check in into.checks if check.reason is not Reason.CASE_REFUSED]
    return why
