"""From a step in a series to a regression, or to the reason why it is none."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median

import sqlalchemy as sa
from sqlmodel import Session, col, select

from contract.outcomes import State, Verdict
from service.kernels import series_order
from service.metrics import OVER_BASELINE
from service.models import Comparison, Evaluation, Kernel, Measurement, Revision, Series
from service.regressions import following, keeping
from service.regressions.order import unmeasured_between
from service.regressions.tables import Regression, RegressionCase, SeriesChange
from verdict.history import Step

# How many revisions on either side of a step are looked at in the other series.
_NEAR = 8


def take_steps(
    session: Session, kernel: Kernel, series: Series, steps: Sequence[tuple[SeriesChange, Step]], *, least: float
) -> None:
    """`steps` of one series, in order; `least`: the change that matters, as a fraction."""
    for row, step in steps:
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
                device_class=series.device_class,
                case=series.case,
                evidence="history",
                metric=series.metric,
                ratio=step.ratio,
                low=step.low,
                high=step.high,
                allowed_slowdown=least,
            )
            regression, case = keeping.keep(session, sign)
            row.regression_id = regression.id
            if sign.direction == "slower":
                following.follow(session, case)
            else:
                _bring_back(session, kernel, series, step, first=first, least=least)
        session.add(row)
    session.flush()


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


def _bring_back(session: Session, kernel: Kernel, series: Series, step: Step, *, first: Revision, least: float) -> None:
    """A step down to the level before a slowdown fixes it."""
    for case in following.open_cases(session, kernel_id=kernel.id, device_class=series.device_class):
        if case.case != series.case or case.evidence != "history" or case.fixed_by is not None:
            continue
        if case.ratio * step.ratio <= 1.0 + least:
            case.fixed_by, case.kept = first.id, True
            session.add(case)
            session.flush()
            keeping.close_if_fixed(session, session.get_one(Regression, case.regression_id))
