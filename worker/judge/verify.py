"""The verify stage: every input family of every case, all of the output against the reference."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from contract.layout import TensorSpec
from contract.names import CaseId
from contract.outcomes import Reason
from contract.report import Check
from worker.judge.bursts import Subject, check_surroundings, reason_of, words
from worker.judge.device import Arena
from worker.judge.faults import FATAL, FaultError
from worker.judge.sides import Revision
from worker.judge.slots import Slots
from worker.launch.client import Launcher, LauncherError
from worker.protocol import Attach, Detach, Prepare

_SLOTS = 3  # the call, the same call again, and one that must stay as it is
DETERMINISM_FAMILY = "normal"


@dataclass
class Verified:
    """`deterministic` says whether the same call twice gave the same bits, per case."""

    deterministic: dict[CaseId, bool]
    workspace_bytes: dict[CaseId, int]


def verify_case(
    subject: Subject,
    revision: Revision,
    launcher: Launcher,
    arena: Arena,
    *,
    tensors: tuple[TensorSpec, ...],
    families: tuple[str, ...],
    random: Random,
    verified: Verified,
) -> Iterator[Check]:
    """One check a family. A process that can't be used any more ends the case with a FaultError."""
    layout = revision.load(launcher, subject.case, subject.dims, tensors)
    verified.workspace_bytes[subject.case] = layout.workspace_bytes
    slots = Slots(subject.device, arena, layout, min(_SLOTS, arena.bytes // layout.slot_bytes), random)
    _ask(Attach(), launcher, subject, revision)
    slots.lay_guards()
    for family in families:
        twice = family == DETERMINISM_FAMILY and slots.count == _SLOTS
        try:
            yield _verify_family(
                subject, revision, launcher, slots, family=family, twice=twice, random=random, verified=verified
            )
        except FaultError as fault:
            if fault.reason in FATAL or fault.side != revision.name:
                raise
            yield Check(case=subject.case, family=family, passed=False, reason=fault.reason, message=fault.message)
            if fault.reason is Reason.RETURNED_ERROR:
                return
            slots.lay_guards()
    _ask(Detach(), launcher, subject, revision)


def _ask(command: Attach | Detach, launcher: Launcher, subject: Subject, revision: Revision) -> None:
    try:
        launcher.ask(command, limit_s=subject.call_limit_s)
    except LauncherError as error:
        raise FaultError(error.reason, str(error), side=revision.name, case=subject.case) from error


def _verify_family(
    subject: Subject,
    revision: Revision,
    launcher: Launcher,
    slots: Slots,
    *,
    family: str,
    twice: bool,
    random: Random,
    verified: Verified,
) -> Check:
    everywhere = slice(0, slots.count)
    order = random.sample(range(slots.count), 2 if twice else 1)
    masters = []
    try:
        launcher.ask(Prepare(slots=tuple(order)), limit_s=subject.call_limit_s)
        inputs = [view[order[0]] for view in slots.inputs]
        subject.operator.fill(subject.device.xp, family, inputs, subject.dims, random.getrandbits(63))
        for view in slots.inputs:
            masters.append(view[order[0]].copy())
            view[everywhere] = masters[-1]
        slots.poison(everywhere)
        subject.device.synchronize()
        launcher.go(limit_s=subject.call_limit_s)
    except LauncherError as error:
        raise FaultError(error.reason, str(error), side=revision.name, case=subject.case) from error
    outputs = [view[order[0]].copy() for view in slots.outputs]
    untouched = [slot for slot in range(slots.count) if slot not in order]
    check_surroundings(slots, where=everywhere, untouched=untouched, side=revision.name, case=subject.case)
    for master, view in zip(masters, slots.inputs, strict=True):
        if any(not slots.same_bits(view[slot], master) for slot in range(slots.count)):
            raise FaultError(Reason.INPUT_MODIFIED, "an input was modified", side=revision.name, case=subject.case)
    if twice:
        pairs = zip(outputs, slots.outputs, strict=True)
        verified.deterministic[subject.case] = all(slots.same_bits(one, view[order[1]]) for one, view in pairs)
    compared = subject.operator.compare(subject.how, family, masters, outputs, subject.dims)
    return Check(
        case=subject.case,
        family=family,
        passed=compared.passed,
        error=compared.error,
        bound=compared.bound,
        of_bound=compared.of_bound,
        reason=None if compared.passed else reason_of(compared),
        message="" if compared.passed else words(compared),
    )
