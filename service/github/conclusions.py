"""What the gate's answer is called on GitHub. `neutral` and `skipped` satisfy a required check: never used here."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

from contract.gate import GateAnswer, GateConclusion
from service.github.plans import Fault, Hold

Status = Literal["queued", "in_progress", "completed"]
Conclusion = Literal["success", "failure", "timed_out", "action_required", "cancelled"]


@dataclass(frozen=True, kw_only=True)
class Standing:
    """Where a gate stands. `planned`: whether the change was read; `started`: whether a node took anything of it.

    `holds`: what nobody has accepted yet; `unapproved`: a fork's commit that nobody let run; `starved`: classes for
    which no healthy node was heard of in time; `broken`: why the change could not be read, after all retries.
    """

    planned: bool = True
    started: bool = False
    ended: str | None = None
    broken: str | None = None
    unapproved: bool = False
    faults: tuple[Fault, ...] = ()
    holds: tuple[Hold, ...] = ()
    starved: tuple[str, ...] = ()
    answer: GateAnswer | None = None


@dataclass(frozen=True, kw_only=True)
class Decision:
    """`sentence`: the check's title, and the first line of its summary."""

    status: Status
    conclusion: Conclusion | None
    sentence: str


def decide(standing: Standing) -> Decision:
    """First what ends it, then what surely fails, then what must wait, then what nobody could measure, then what a
    person has to decide."""
    conclusion, sentence = next((row.conclusion, row.sentence) for row in _rows(standing) if row.holds)
    if conclusion in {"queued", "in_progress"}:
        return Decision(status=conclusion, conclusion=None, sentence=sentence)
    return Decision(status="completed", conclusion=conclusion, sentence=sentence)


def hold_back(own: Decision, others: Sequence[tuple[str, Decision]]) -> Decision:
    """A commit has one check of the name, whichever gate wrote it last: it lets a merge through only where all gates
    over the commit would. `others`: with what they are called."""
    if own.conclusion != "success":
        return own
    held = [(name, other) for name, other in others if other.conclusion != "success"]
    if not held:
        return own
    name, other = min(held, key=lambda each: each[1].conclusion is None)
    return replace(other, sentence=f"{name}: {other.sentence}")


class _Row(NamedTuple):
    holds: bool
    conclusion: Any
    sentence: str


def _rows(standing: Standing) -> Iterator[_Row]:
    """The table, in the order of precedence; the last row always holds."""
    answer = standing.answer
    said = answer.conclusion if answer is not None else None
    sentence = answer.sentence if answer is not None else "no kernel is touched: nothing to judge"
    classes = ", ".join(standing.starved)
    pending = said is GateConclusion.PENDING
    to_come = answer.pending if answer is not None else 0
    waiting = f"{to_come} evaluation{'' if to_come == 1 else 's'} to come"
    fork = "a fork's commit: someone with write permission has to let it run"
    yield _Row(standing.ended is not None, "cancelled", standing.ended or "")
    yield _Row(standing.broken is not None, "timed_out", f"could not be judged: {standing.broken}")
    yield _Row(not standing.planned, "queued", "reading the change")
    yield _Row(bool(standing.faults), "failure", _first([fault.said for fault in standing.faults]))
    yield _Row(standing.unapproved, "action_required", fork)
    yield _Row(said is GateConclusion.FAILURE, "failure", sentence)
    starved = f"no healthy node of class {classes} was heard of in time"
    yield _Row(pending and bool(classes), "timed_out", starved)
    yield _Row(pending, "in_progress" if standing.started else "queued", waiting)
    yield _Row(said is GateConclusion.NOT_MEASURED, "timed_out", sentence)
    yield _Row(said is GateConclusion.CANCELLED, "cancelled", sentence)
    yield _Row(bool(standing.holds), "action_required", _first([hold.said for hold in standing.holds]))
    yield _Row(True, "success", sentence)


def _first(said: list[str]) -> str:
    more = f" (and {len(said) - 1} more)" if len(said) > 1 else ""
    return f"{said[0]}{more}" if said else ""
