"""Why the gate concludes what it does, in one sentence."""

from __future__ import annotations

from collections.abc import Sequence

from contract.devices import DeviceClass
from contract.gate import GateConclusion, GateRow, GateSubject, RowStatus
from verdict.gate.rows import LEFT_OUT, title_of
from verdict.words import percent

_DECISIVE: dict[GateConclusion, RowStatus] = {
    GateConclusion.FAILURE: RowStatus.BAD,
    GateConclusion.NOT_MEASURED: RowStatus.MISSING,
    GateConclusion.CANCELLED: RowStatus.CANCELLED,
    GateConclusion.PENDING: RowStatus.PENDING,
}
_LONGEST = 300


def sentence_of(conclusion: GateConclusion, rows: Sequence[GateRow], subjects: Sequence[GateSubject]) -> str:
    """`rows`: in the order of the answer."""
    if not subjects:
        return "no kernel is touched: nothing to judge"
    if conclusion is not GateConclusion.SUCCESS:
        return _with_the_rest(_DECISIVE[conclusion], rows, subjects)
    if any(row.status is RowStatus.UNPROVEN for row in rows):
        return f"not proven: {_with_the_rest(RowStatus.UNPROVEN, rows, subjects)}"
    return _all_well(rows)


def _with_the_rest(status: RowStatus, rows: Sequence[GateRow], subjects: Sequence[GateSubject]) -> str:
    of_status = [row for row in rows if row.status is status]
    first = of_status[0]
    more = len(of_status) - 1
    return f"{_place(first, subjects)}: {first.said}"[:_LONGEST] + (f", and {more} more" if more else "")


def _place(row: GateRow, subjects: Sequence[GateSubject]) -> str:
    """`hgemm v5 on h200 at 4096^3`."""
    suite = next(subject.suite for subject in subjects if subject.suite.kernel == row.kernel)
    words = [row.kernel, row.revision or ""]
    if row.device_class:
        words += ["on", row.device_class.value]
    if row.case:
        words += ["at", title_of(suite, row.case)]
    return " ".join(word for word in words if word)


def _all_well(rows: Sequence[GateRow]) -> str:
    """What was compared, and in a word what was not: a class with no base, or one that only builds."""
    of: dict[tuple[str, DeviceClass | None], list[GateRow]] = {}
    for row in rows:
        of.setdefault((row.kernel, row.device_class), []).append(row)
    compared = [key for key, own in of.items() if any(row.verdict is not None for row in own)]
    said = [f"{_where(compared)}: {_comparisons([row for key in compared for row in of[key]])}"] if compared else []
    rest: dict[str, list[tuple[str, DeviceClass | None]]] = {}
    # What was measured before what was only built.
    for key, own in sorted(of.items(), key=lambda each: all(row.case is None for row in each[1])):
        if key not in compared:
            what = next((row.said for row in own if not row.said.startswith(LEFT_OUT)), own[0].said)
            rest.setdefault(what, []).append(key)
    said += [f"{_where(keys)}: {what}" for what, keys in rest.items()]
    return "; ".join(said)


def _where(places: Sequence[tuple[str, DeviceClass | None]]) -> str:
    kernels = ", ".join(dict.fromkeys(kernel for kernel, _ in places))
    classes = ", ".join(dict.fromkeys(each.value for _, each in places if each))
    return f"{kernels} on {classes}" if classes else kernels


def _comparisons(rows: Sequence[GateRow]) -> str:
    compared = [row for row in rows if row.verdict is not None]
    tolerated = [row for row in rows if row.status is RowStatus.TOLERATED]
    limits = sorted({row.allowed_slowdown for row in compared if row.allowed_slowdown is not None})
    allowed = " to ".join(percent(limit) for limit in dict.fromkeys([limits[0], limits[-1]])) if limits else ""
    except_for = (
        f", but for {len(tolerated)} that {'is' if len(tolerated) == 1 else 'are'} accepted" if tolerated else ""
    )
    cases = "1 comparison" if len(compared) == 1 else f"{len(compared)} comparisons"
    return f"nothing is slower than allowed ({allowed}) in {cases}{except_for}"
