"""From a step in a series to a regression, or to the reason why it is none."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import sqlalchemy as sa
from sqlmodel import Session, col, select

from contract.outcomes import State, Verdict
from service.kernels import series_order
from service.metrics import OVER_BASELINE
from service.models import Comparison, Evaluation, Kernel, Measurement, Revision, Series
from service.regressions import following, keeping
from service.regressions.order import key_of, unmeasured_between
from service.regressions.tables import Regression, RegressionCase, SeriesChange
from verdict.history import Step

# How many revisions on either side of a step are looked at in the other series.
_NEAR = 8


@dataclass(frozen=True, kw_only=True)
class Taken:
    """A step of a series, and its row. `least`: the change that matters, as a fraction."""

    series: Series
    row: SeriesChange
    step: Step
    least: float


def take_steps(session: Session, kernel: Kernel, steps: Sequence[Taken]) -> None:
    """Steps of series of one kernel, in the order of the history."""
    places = {each.row.id: key_of(session.get_one(Revision, each.step.first)) for each in steps}
    for taken in sorted(steps, key=lambda each: places[each.row.id]):
        series, row, step = taken.series, taken.row, taken.step
        first, after = session.get_one(Revision, step.first), session.get_one(Revision, step.after)
        between = unmeasured_between(session, after=after, until=first, series_ids=[series.id])
        row.unmeasured = [each.id for each in between]
        row.note = _why_not(session, kernel, series, step, first=first, lone=not between)
        if row.note is None:
            sign = keeping.Sign(
                kernel=kernel,
                revision=first,
                base=after,
                suspects=[*between, first],
                perhaps=_perhaps(session, step, first=first, after=after, between=between),
                device_class=series.device_class,
                case=series.case,
                evidence="history",
                metric=series.metric,
                ratio=step.ratio,
                low=step.low,
                high=step.high,
                allowed_slowdown=taken.least,
            )
            regression, case = keeping.keep(session, sign)
            row.regression_id = regression.id
            if sign.direction == "slower":
                following.follow(session, case)
            else:
                _bring_back(session, kernel, taken, first=first)
        session.add(row)
    session.flush()


def _perhaps(
    session: Session, step: Step, *, first: Revision, after: Revision, between: Sequence[Revision]
) -> list[Revision]:
    """Revisions with which it may as well begin: noise lets no one tell, or they were measured elsewhere, as where
    nodes take turns."""
    known = {each.id for each in between}
    elsewhere = unmeasured_between(session, after=after, until=first, series_ids=[])
    noisy = [session.get_one(Revision, each) for each in step.perhaps]
    return list({each.id: each for each in (*noisy, *elsewhere) if each.id not in known}.values())


def drop_vanished(session: Session, kernel: Kernel, series: Series, steps: Sequence[SeriesChange]) -> None:
    """Cases that rest on a step which more points made vanish."""
    causes = {each for row in steps for each in (row.revision_id, *row.unmeasured)}
    query = select(RegressionCase).where(
        RegressionCase.kernel_id == kernel.id,
        RegressionCase.device_class == series.device_class,
        RegressionCase.case == series.case,
        RegressionCase.evidence == "history",
        RegressionCase.metric == series.metric,
        col(RegressionCase.revision_id).not_in(causes),
    )
    for case in session.exec(query).all():
        keeping.withdraw(session, case, why="with the points that came in between there is no step")


def _why_not(
    session: Session, kernel: Kernel, series: Series, step: Step, *, first: Revision, lone: bool
) -> str | None:
    """Why nobody is to blame, where nobody is."""
    if series.metric != OVER_BASELINE and _sibling(session, series, OVER_BASELINE) is not None:
        return "the ratio to the baseline decides"
    if lone:
        verdict = _side_by_side(session, kernel, series, first)
        if verdict in {Verdict.SAME, Verdict.FASTER if step.ratio > 1 else Verdict.SLOWER}:
            word = "as fast as" if verdict == Verdict.SAME else f"{verdict} than"
            return f"side by side on one card {first.label} is {word} its base"
    if series.metric == OVER_BASELINE:
        own = _absolute_change(session, series, step)
        if own is not None and abs(own) < abs(math.log(step.ratio)) / 2:
            return "the baseline changed, the kernel's own time didn't"
    return None


def _side_by_side(session: Session, kernel: Kernel, series: Series, revision: Revision) -> str | None:
    """The newest verdict of the revision against its base, from pairs."""
    return session.exec(
        select(Comparison.verdict)
        .join(Evaluation, col(Evaluation.id) == col(Comparison.evaluation_id))
        .where(
            Evaluation.kernel_id == kernel.id,
            Evaluation.revision_id == revision.id,
            Evaluation.device_class == series.device_class,
            Evaluation.state == State.FINISHED,
            Comparison.case == series.case,
            Comparison.measured == "pairs",
            col(Comparison.verdict).is_not(None),
        )
        .order_by(col(Evaluation.id).desc())
    ).first()


def _sibling(session: Session, series: Series, metric: str) -> Series | None:
    return session.exec(
        select(Series).where(
            Series.kernel_id == series.kernel_id,
            Series.device_class == series.device_class,
            Series.case == series.case,
            Series.metric == metric,
        )
    ).first()


def _absolute_change(session: Session, series: Series, step: Step) -> float | None:
    """ln of the kernel's own time after over before, from the revisions next to the step; None without values."""
    absolute = _sibling(session, series, "time")
    if absolute is None:
        return None
    query = (
        sa.select(col(Revision.id), col(Measurement.value))
        .join(Revision, col(Revision.id) == col(Measurement.revision_id))
        .where(
            col(Measurement.series_id) == absolute.id,
            col(Measurement.trusted).is_(True),
            col(Revision.mainline).is_(True),
        )
        .order_by(*series_order(), col(Measurement.evaluation_id))
    )
    values = {row.id: row.value for row in session.execute(query)}
    names = list(values)
    if step.first not in values:
        return None
    place = names.index(step.first)
    before, after = names[max(place - _NEAR, 0) : place], names[place : place + _NEAR]
    if not before:
        return None
    return math.log(median(values[name] for name in after) / median(values[name] for name in before))


def _bring_back(session: Session, kernel: Kernel, taken: Taken, *, first: Revision) -> None:
    """Steps down to the level before a slowdown, one or several, fix it."""
    series, level = taken.series, 1.0 + taken.least
    changes = session.exec(
        select(SeriesChange, Revision)
        .join(Revision, col(Revision.id) == col(SeriesChange.revision_id))
        .where(SeriesChange.series_id == series.id, SeriesChange.kind == "step", col(SeriesChange.note).is_(None))
    ).all()
    until = key_of(first)
    for case in following.open_cases(session, kernel_id=kernel.id, device_class=series.device_class):
        if case.case != series.case or case.metric != series.metric or case.fixed_by is not None:
            continue
        since = key_of(session.get_one(Revision, case.revision_id))
        if math.prod(row.ratio or 1.0 for row, at in changes if since <= key_of(at) <= until) <= level:
            case.fixed_by, case.kept = first.id, True
            session.add(case)
            session.flush()
            keeping.close_if_fixed(session, session.get_one(Regression, case.regression_id))
