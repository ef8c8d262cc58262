"""Regressions as the API answers them; a page in a fixed number of queries, however many cases they touch."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, cast

from sqlmodel import Session, col, desc, select

from contract.devices import DeviceClass
from contract.regressions import (
    AffectedCase,
    ChangeOut,
    ChangesOut,
    Direction,
    PendingOut,
    RegressionEventOut,
    RegressionIn,
    RegressionOut,
    RegressionState,
    RevisionSpot,
)
from contract.text import clean, one_line
from service import find
from service.auth import Principal
from service.models import Kernel, Project, Revision, Series, Token
from service.pages import cut
from service.problems import ProblemError, not_found
from service.regressions import states
from service.regressions.tables import Regression, RegressionCase, RegressionEvent, SeriesChange
from service.regressions.tracking import toolchain_changes, tracker_of
from service.statics import NO_CASE
from verdict.words import percent, ratio_in_words


def list_regressions(
    session: Session,
    *,
    principal: Principal,
    project: str | None,
    states_wanted: Sequence[RegressionState],
    kernel: str | None,
    device_class: DeviceClass | None,
    direction: Direction,
    after: str | None,
    limit: int,
    brief: bool,
) -> tuple[list[RegressionOut], str | None]:
    """Newest first; the second value is the `after` of the next page."""
    query = select(Regression).where(Regression.direction == direction)
    if project is not None:
        owner = find.project_by_slug(session, principal=principal, slug=project)
        query = query.where(Regression.project_id == owner.id)
    elif principal.project is not None:
        query = query.where(Regression.project_id == principal.project)
    if states_wanted:
        query = query.where(col(Regression.state).in_(states_wanted))
    if kernel is not None or device_class is not None:
        touched = select(RegressionCase.regression_id)
        if kernel is not None:
            touched = touched.join(Kernel, col(Kernel.id) == col(RegressionCase.kernel_id)).where(Kernel.name == kernel)
        if device_class is not None:
            touched = touched.where(RegressionCase.device_class == device_class)
        query = query.where(col(Regression.id).in_(touched))
    if after is not None:
        query = query.where(col(Regression.id) < after)
    found = session.exec(query.order_by(desc(col(Regression.id))).limit(limit + 1)).all()
    rows, following = cut(found, limit, lambda row: row.id)
    return regression_outs(session, rows, brief=brief), following


def regression_by_id(session: Session, *, principal: Principal, regression_id: str, lock: bool = False) -> Regression:
    query = select(Regression).where(Regression.id == regression_id)
    row = session.exec(query.with_for_update() if lock else query).first()
    if row is None:
        raise not_found("regression", regression_id)
    principal.allow(find.existing(session, Project, row.project_id))
    return row


def change_state(session: Session, *, principal: Principal, regression_id: str, wanted: RegressionIn) -> RegressionOut:
    """Raises ProblemError 409 `state-not-reachable`, and 422 where it is said to be fixed without being measured so."""
    row = regression_by_id(session, principal=principal, regression_id=regression_id, lock=True)
    reason = clean(wanted.reason).strip()
    if not reason:
        raise ProblemError(422, "invalid-request", "reason: say why, for those who come after you", field="reason")
    states.move(session, row, wanted.state, who=_who(session, principal, wanted.who), reason=reason)
    return regression_outs(session, [row])[0]


def _who(session: Session, principal: Principal, name: str) -> str:
    """The name that was given, and the token, which nobody can make up."""
    token = session.get(Token, principal.token_id) if principal.token_id else None
    known = f"{token.note} ({token.id})" if token and token.note else token.id if token else principal.scope.value
    said = one_line(name, 100).strip()
    return (f"{said}, {known}" if said else known)[:200]


def regression_outs(session: Session, rows: Sequence[Regression], *, brief: bool = False) -> list[RegressionOut]:
    ids = [row.id for row in rows]
    cases: dict[str, list[RegressionCase]] = defaultdict(list)
    for case in session.exec(select(RegressionCase).where(col(RegressionCase.regression_id).in_(ids))).all():
        cases[case.regression_id].append(case)
    events: dict[str, list[RegressionEvent]] = defaultdict(list)
    for event in session.exec(
        select(RegressionEvent).where(col(RegressionEvent.regression_id).in_(ids)).order_by(col(RegressionEvent.number))
    ).all():
        events[event.regression_id].append(event)
    spots = _spots(session, _named(rows, [case for of in cases.values() for case in of]))
    projects = {
        row.id: row.slug
        for row in session.exec(select(Project).where(col(Project.id).in_({row.project_id for row in rows}))).all()
    }
    kernels = {
        row.id: row.name
        for row in session.exec(
            select(Kernel).where(col(Kernel.id).in_({case.kernel_id for of in cases.values() for case in of}))
        ).all()
    }
    return [
        _out(
            row,
            project=projects[row.project_id],
            kernels=kernels,
            spots=spots,
            cases=cases[row.id],
            events=events[row.id],
            brief=brief,
        )
        for row in rows
    ]


def _named(rows: Sequence[Regression], cases: Sequence[RegressionCase]) -> set[str]:
    named: list[str | None] = []
    for row in rows:
        named += [row.revision_id, row.after_id, row.fixed_by, *row.suspects]
    for case in cases:
        named += [case.revision_id, case.base_id, case.fixed_by]
    return {each for each in named if each}


def _spots(session: Session, ids: Iterable[str]) -> dict[str, RevisionSpot]:
    rows = session.exec(select(Revision).where(col(Revision.id).in_(set(ids)))).all()
    return {row.id: RevisionSpot(id=row.id, label=row.label, commit=row.commit, summary=row.summary) for row in rows}


def _out(
    row: Regression,
    *,
    project: str,
    kernels: dict[str, str],
    spots: dict[str, RevisionSpot],
    cases: Sequence[RegressionCase],
    events: Sequence[RegressionEvent],
    brief: bool,
) -> RegressionOut:
    ordered = sorted(cases, key=lambda case: (-max(case.ratio, 1.0 / case.ratio), case.case))
    shown = ordered[:1] if brief else ordered
    affected = tuple(
        AffectedCase(
            kernel=kernels[case.kernel_id],
            device_class=DeviceClass(case.device_class),
            case=case.case,
            evidence=cast("Any", case.evidence),
            metric=case.metric,
            revision=spots[case.revision_id],
            base=spots.get(case.base_id or ""),
            evaluation=case.evaluation_id,
            ratio=case.ratio,
            interval=(case.low, case.high) if case.low is not None and case.high is not None else None,
            allowed_slowdown=case.allowed_slowdown,
            now=next(reversed(case.standings.values()), None) if row.direction == "slower" else None,
            fixed_by=spots.get(case.fixed_by or ""),
        )
        for case in shown
    )
    suspects = tuple(spots[each] for each in row.suspects if each in spots)
    return RegressionOut(
        id=row.id,
        project=project,
        direction=cast("Direction", row.direction),
        state=RegressionState(row.state),
        sentence=_sentence(affected[0], count=len(ordered), suspects=suspects),
        revision=spots[row.revision_id],
        after=spots.get(row.after_id or ""),
        suspects=suspects,
        kernels=tuple(dict.fromkeys(kernels[case.kernel_id] for case in ordered)),
        device_classes=tuple(dict.fromkeys(DeviceClass(case.device_class) for case in ordered)),
        worst_ratio=row.worst_ratio,
        affected=len(ordered),
        cases=affected,
        fixed_by=spots.get(row.fixed_by or ""),
        kept=row.kept,
        who=row.who,
        reason=row.reason,
        created_at=row.created_at,
        changed_at=row.changed_at,
        events=tuple(
            RegressionEventOut(state=RegressionState(event.state), who=event.who, reason=event.reason, at=event.at)
            for event in events
        ),
    )


def _sentence(first: AffectedCase, *, count: int, suspects: Sequence[RevisionSpot]) -> str:
    """`hgemm v4 is 12 % slower than v3 at m=… on h200 (allowed 0.5 %), and 2 more cases; v3a was not measured`."""
    words = f"{first.kernel} {first.revision.label} is {ratio_in_words(first.ratio, first.interval)}"
    if first.base is not None:
        words += f" than {first.base.label}"
    words += f" at {first.case} on {first.device_class.value}"
    if first.ratio > 1.0 and first.allowed_slowdown is not None:
        words += f" (allowed {percent(first.allowed_slowdown)})"
    if count > 1:
        words += f", and {count - 1} more {'case' if count == 2 else 'cases'}"
    others = [each.label for each in suspects if each.id != first.revision.id]
    if others:
        named = ", ".join(others[:5]) + (f" and {len(others) - 5} more" if len(others) > 5 else "")
        words += f"; {named} {'was' if len(others) == 1 else 'were'} not measured and may be the cause"
    return words


def changes_out(session: Session, *, project: Project, kernel: Kernel, series: Series) -> ChangesOut:
    """What happened in one series, in the order in which it was found."""
    kept = select(SeriesChange).where(SeriesChange.series_id == series.id).order_by(col(SeriesChange.id))
    rows = toolchain_changes(session, series) if series.case == NO_CASE else session.exec(kept).all()
    tracker = tracker_of(session, series)
    pending = tracker.pending if tracker else None
    wanted: list[str | None] = [pending.first if pending else None]
    for row in rows:
        wanted += [row.revision_id, row.after_id, *row.unmeasured]
    spots = _spots(session, [each for each in wanted if each])
    return ChangesOut(
        project=project.slug,
        kernel=kernel.name,
        device_class=DeviceClass(series.device_class),
        case=series.case,
        metric=series.metric,
        changes=tuple(
            ChangeOut(
                kind=cast("Any", row.kind),
                revision=spots[row.revision_id],
                after=spots.get(row.after_id or ""),
                unmeasured=tuple(spots[each] for each in row.unmeasured if each in spots),
                ratio=row.ratio,
                interval=(row.low, row.high) if row.low is not None and row.high is not None else None,
                before_value=row.before_value,
                after_value=row.after_value,
                changed={name: (was, now) for name, (was, now) in row.changed.items()} if row.kind == "segment" else {},
                note=row.note,
                regression=row.regression_id,
            )
            for row in rows
        ),
        pending=PendingOut(revision=spots[pending.first], ratio=pending.ratio, points=pending.points)
        if pending and pending.first in spots
        else None,
    )
