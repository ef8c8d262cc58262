"""Where each kernel stands on each class: worked out when its history changes, read as it is by the overview."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import sqlalchemy as sa
from sqlmodel import Session, col, select

from contract.devices import DeviceClass
from contract.outcomes import Outcome, Verdict
from contract.suite import Case
from contract.views import Standing
from service.ids import new_id
from service.lines import FAILED, Place, line_of, values_of
from service.metrics import BASELINE_PREFIX, OVER_BASELINE, THROUGHPUT
from service.models import CheckResult, Comparison, Evaluation, Kernel, Measurement, Revision, Series, Suite
from service.models import Standing as StandingRow
from service.thinning import thin

SPARKLINE_POINTS = 40
# How far back a sparkline looks, in revisions of the mainline.
_SPARKLINE_REVISIONS = 400
_HEADLINES = (THROUGHPUT, "time", OVER_BASELINE)
_BAD = frozenset({*FAILED, Outcome.SLOWER})
_WORST = {Verdict.SLOWER: 3, Verdict.INCONCLUSIVE: 2, Verdict.FASTER: 1, Verdict.SAME: 0}


@dataclass(frozen=True, kw_only=True)
class _Headline:
    """The series that stands for the kernel on the class, and its line over the mainline."""

    series: Series
    line: Sequence[Place]


def refresh_standings(session: Session, kernel: Kernel, device_classes: Iterable[str]) -> None:
    """Write the standings of `kernel` on these classes anew, from what the session's transaction sees."""
    session.flush()
    # Two transactions that add to one kernel's history would each miss what the other added.
    session.exec(select(Kernel.id).where(Kernel.id == kernel.id).with_for_update()).one()
    for device_class in dict.fromkeys(device_classes):
        made = _standing(session, kernel, DeviceClass(device_class))
        row = session.get(StandingRow, (kernel.id, device_class))
        if made is None:
            if row is not None:
                session.delete(row)
            continue
        content = made.model_dump(mode="json")
        if row is None:
            row = StandingRow(kernel_id=kernel.id, device_class=device_class, version=new_id("ver"), content=content)
            session.add(row)
        else:
            row.version, row.content = new_id("ver"), content
            session.add(row)
    session.flush()


def refresh_all_standings(session: Session, kernel: Kernel) -> None:
    """The same for every class that the kernel has a result on."""
    query = sa.select(col(Evaluation.device_class)).where(col(Evaluation.kernel_id) == kernel.id).distinct()
    refresh_standings(session, kernel, [row[0] for row in session.execute(query)])


def _standing(session: Session, kernel: Kernel, device_class: DeviceClass) -> Standing | None:
    headline = _headline(session, kernel, device_class)
    line = headline.line if headline else line_of(session, kernel, device_class=device_class, values={}, mainline=True)
    if not line:
        return None
    newest = line[-1]
    evaluation = session.get_one(Evaluation, newest.evaluation)
    revision = session.get_one(Revision, newest.revision)
    base = session.get(Revision, evaluation.base_id) if evaluation.base_id else None
    values = _values(session, evaluation, headline.series.case) if headline else {}
    own = values.get(headline.series.metric) if headline else None
    share = values.get(OVER_BASELINE)
    compared = _comparisons(session, evaluation)
    measured = [row for row in compared if row.skipped is None]
    judged = [row for row in compared if row.verdict]
    worst = max(judged, key=lambda row: row.ratio or 0.0, default=None)
    return Standing(
        kernel=kernel.name,
        operator=kernel.operator,
        summary=kernel.summary,
        device_class=device_class,
        revision=revision.id,
        label=revision.label,
        commit=revision.commit,
        evaluation=evaluation.id,
        at=evaluation.finished_at or evaluation.created_at,
        outcome=Outcome(newest.outcome),
        sentence=evaluation.summary,
        correct=_correct(session, evaluation),
        bad=newest.outcome in _BAD,
        case=headline.series.case if headline else None,
        metric=headline.series.metric if headline else None,
        unit=headline.series.unit if headline else None,
        better=cast("Any", headline.series.better) if headline else None,
        value=own.value if own else None,
        low=own.low if own else None,
        high=own.high if own else None,
        over_baseline=share.value if share else None,
        baseline=next((row.baseline for row in compared if headline and row.case == headline.series.case), None),
        verdict=max((Verdict(row.verdict) for row in judged), key=lambda each: _WORST[each], default=None),
        base=base.label if base else None,
        worst_case=worst.case if worst else None,
        worst_ratio=worst.ratio if worst else None,
        worst_interval=(worst.low, worst.high) if worst and worst.low is not None and worst.high is not None else None,
        cases=len(measured),
        sparkline=_sparkline(line) if headline else (),
    )


def _headline(session: Session, kernel: Kernel, device_class: DeviceClass) -> _Headline | None:
    """The first case of the suite, else of the history, that has values; its throughput, else time, else share."""
    suite = session.get(Suite, kernel.suite_id) if kernel.suite_id else None
    listed = [Case.model_validate(each).id for each in suite.content.get("cases", ())] if suite else []
    rows = session.exec(
        select(Series)
        .where(Series.kernel_id == kernel.id, Series.device_class == device_class, Series.case != "")
        .order_by(Series.id)
    ).all()
    judged = [row for row in rows if row.metric in _HEADLINES and not row.metric.startswith(BASELINE_PREFIX)]
    cases = dict.fromkeys([*listed, *(row.case for row in judged)])
    order = {case: place for place, case in enumerate(cases)}
    for series in sorted(judged, key=lambda row: (order[row.case], _HEADLINES.index(row.metric))):
        line = line_of(session, kernel, device_class=device_class, values=values_of(session, series.id), mainline=True)
        if any(place.value is not None for place in line):
            return _Headline(series=series, line=line)
    return None


def _sparkline(line: Sequence[Place]) -> tuple[float, ...]:
    values = [place.value for place in line[-_SPARKLINE_REVISIONS:] if place.value is not None]
    shown = thin(values, kept=[False] * len(values), points=SPARKLINE_POINTS)
    # More digits than any screen shows would be most of the overview.
    return tuple(float(f"{values[place]:.5g}") for place in shown)


def _values(session: Session, evaluation: Evaluation, case: str) -> dict[str, Any]:
    query = (
        sa.select(col(Series.metric), col(Measurement.value), col(Measurement.low), col(Measurement.high))
        .join(Measurement, col(Measurement.series_id) == col(Series.id))
        .where(
            col(Measurement.evaluation_id) == evaluation.id,
            col(Measurement.trusted).is_(True),
            col(Series.case) == case,
        )
    )
    return {row.metric: row for row in session.execute(query)}


def _comparisons(session: Session, evaluation: Evaluation) -> Sequence[Any]:
    """Without the pairs, which can be a megabyte."""
    query = sa.select(
        col(Comparison.case),
        col(Comparison.skipped),
        col(Comparison.baseline),
        col(Comparison.verdict),
        col(Comparison.ratio),
        col(Comparison.low),
        col(Comparison.high),
    ).where(col(Comparison.evaluation_id) == evaluation.id)
    return session.execute(query.order_by(col(Comparison.position))).all()


def _correct(session: Session, evaluation: Evaluation) -> bool | None:
    """None where nothing was verified here."""
    if evaluation.outcome == Outcome.INCORRECT:
        return False
    if evaluation.outcome not in {Outcome.PASSED, Outcome.SLOWER, Outcome.INCONCLUSIVE}:
        return None
    checks = sa.select(col(CheckResult.passed)).where(col(CheckResult.evaluation_id) == evaluation.id)
    passed = [row[0] for row in session.execute(checks)]
    return all(passed) if passed else None
