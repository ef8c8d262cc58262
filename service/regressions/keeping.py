"""One object a cause: opened at the first sign, joined by every other case, class and kernel that shows the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlmodel import Session, col, or_, select

from contract.regressions import Direction, RegressionState
from service.models import Kernel, Project, Revision
from service.regressions import states
from service.regressions.tables import Regression, RegressionCase


@dataclass(frozen=True, kw_only=True)
class Sign:
    """That one case changed with `revision`, or with one of `suspects` before it. `perhaps`: others that were measured
    and with which it may as well have. `forgiven`: why it may."""

    kernel: Kernel
    revision: Revision
    base: Revision | None
    suspects: Sequence[Revision]
    device_class: str
    case: str
    evidence: str
    ratio: float
    low: float | None
    high: float | None
    allowed_slowdown: float | None
    perhaps: Sequence[Revision] = ()
    metric: str | None = None
    evaluation_id: str | None = None
    forgiven: str | None = None

    @property
    def direction(self) -> Direction:
        return "slower" if self.ratio > 1.0 else "faster"


def keep(session: Session, sign: Sign) -> tuple[Regression, RegressionCase]:
    """The regression that this is a sign of, with its case in it. The same sign again changes nothing but numbers."""
    regression = _of_the_same_cause(session, sign)
    if regression is None:
        regression = _open(session, sign)
    else:
        _narrow(session, regression, sign)
        _reopen(session, regression, sign)
    case = session.exec(
        select(RegressionCase).where(
            RegressionCase.regression_id == regression.id,
            RegressionCase.kernel_id == sign.kernel.id,
            RegressionCase.device_class == sign.device_class,
            RegressionCase.case == sign.case,
        )
    ).first()
    if case is None:
        _open_for_more(session, regression, sign)
    if case is None or (case.evidence == "history" and sign.evidence != "history") or _is_same(case, sign):
        case = _write(case, regression, sign)
        session.add(case)
    others = session.exec(select(RegressionCase).where(RegressionCase.regression_id == regression.id)).all()
    regression.worst_ratio = worst([*others, case])
    session.add(regression)
    session.flush()
    return regression, case


def withdraw(session: Session, case: RegressionCase, *, why: str) -> None:
    """Measured again, it is none. A regression without a case is noise."""
    regression = session.get_one(Regression, case.regression_id)
    rest = [each for each in _cases(session, regression) if each.id != case.id]
    if rest:
        session.delete(case)
        regression.worst_ratio = worst(rest)
        session.add(regression)
        session.flush()
        close_if_fixed(session, regression)
    elif regression.state in states.OPEN:
        states.move(session, regression, RegressionState.NOISE, who=states.ITSELF, reason=why)


def close_if_fixed(session: Session, regression: Regression) -> None:
    """Fixed, where each of its cases is back at the level before."""
    cases = _cases(session, regression)
    if regression.state not in states.OPEN or any(each.fixed_by is None for each in cases):
        return
    fixers = {row.id: row for row in _revisions(session, [each.fixed_by or "" for each in cases])}
    last = max(fixers.values(), key=lambda row: (row.created_at, row.id))
    kept = all(each.kept is not False for each in cases)
    after = session.get(Revision, regression.after_id) if regression.after_id else None
    if kept:
        reason = f"{last.label} is back at the level before"
    else:
        reason = f"not kept: {last.label} goes on from {after.label if after else 'an earlier revision'}"
    states.move(session, regression, RegressionState.FIXED, who=states.ITSELF, reason=reason)
    regression.fixed_by, regression.kept = last.id, kept
    session.add(regression)


def worst(cases: Sequence[RegressionCase]) -> float:
    """The ratio furthest from 1."""
    return max((each.ratio for each in cases), key=lambda ratio: max(ratio, 1.0 / ratio))


def _of_the_same_cause(session: Session, sign: Sign) -> Regression | None:
    """One whose suspects and this sign's have a revision, or a commit, in common; or else one that may have begun with
    the same."""
    mine = {row.id for row in sign.suspects}
    around = mine | {row.id for row in sign.perhaps}
    commits = [row.commit for row in sign.suspects if row.commit]
    same_project = select(Regression).where(
        Regression.project_id == sign.kernel.project_id, Regression.direction == sign.direction
    )
    of_kernel = select(RegressionCase.regression_id).where(RegressionCase.kernel_id == sign.kernel.id)
    found = session.exec(
        same_project.where(
            or_(
                col(Regression.revision_id).in_(around),
                col(Regression.commit).in_(commits),
                col(Regression.state).in_(states.OPEN) & col(Regression.id).in_(of_kernel),
            )
        ).order_by(col(Regression.id))
    ).all()
    exactly = next(
        (
            each
            for each in found
            if each.revision_id in mine or mine.intersection(each.suspects) or (each.commit and each.commit in commits)
        ),
        None,
    )
    return exactly or _near(session, found, around)


def _near(session: Session, found: Sequence[Regression], around: set[str]) -> Regression | None:
    query = select(RegressionCase).where(col(RegressionCase.regression_id).in_([each.id for each in found]))
    near: dict[str, set[str]] = {each.id: {each.revision_id, *each.suspects} for each in found}
    for case in session.exec(query).all() if found else ():
        near[case.regression_id].update(case.perhaps)
    return next((each for each in found if around.intersection(near[each.id])), None)


def _open(session: Session, sign: Sign) -> Regression:
    # Two kernels of one commit, reported at once, must not open one each.
    session.exec(select(Project.id).where(Project.id == sign.kernel.project_id).with_for_update()).one()
    again = _of_the_same_cause(session, sign)
    if again is not None:
        return again
    regression = Regression(
        project_id=sign.kernel.project_id,
        direction=sign.direction,
        revision_id=sign.revision.id,
        after_id=sign.base.id if sign.base else None,
        commit=sign.revision.commit,
        suspects=[row.id for row in sign.suspects],
        worst_ratio=sign.ratio,
    )
    if sign.forgiven is None:
        states.begin(session, regression, state=RegressionState.NEW, who=states.ITSELF, reason="measured")
    else:
        reason = f"allowed by the suite: {sign.forgiven}"
        states.begin(session, regression, state=RegressionState.EXPECTED, who=states.ITSELF, reason=reason)
    return regression


def _narrow(session: Session, regression: Regression, sign: Sign) -> None:
    """What only one of two ranges holds isn't the cause. Of two places, the one that is better known counts."""
    mine = [row.id for row in sign.suspects]
    common = [each for each in regression.suspects if each in mine]
    if common and len(common) < len(regression.suspects):
        regression.suspects = common
        if sign.revision.id in common:
            _place(regression, sign)
    elif not common and len(sign.perhaps) < _least_doubt(session, regression):
        regression.suspects = mine
        _place(regression, sign)


def _least_doubt(session: Session, regression: Regression) -> int:
    return min((len(case.perhaps) for case in _cases(session, regression)), default=0)


def _place(regression: Regression, sign: Sign) -> None:
    regression.revision_id, regression.commit = sign.revision.id, sign.revision.commit
    regression.after_id = sign.base.id if sign.base else None


def _open_for_more(session: Session, regression: Regression, sign: Sign) -> None:
    """Fixed where it had been seen so far, and now it is seen elsewhere."""
    if regression.state == RegressionState.FIXED and regression.who == states.ITSELF:
        reason = f"{sign.case} on {sign.device_class} has it, too"
        states.move(session, regression, RegressionState.NEW, who=states.ITSELF, reason=reason)


def _reopen(session: Session, regression: Regression, sign: Sign) -> None:
    """What was set aside by a measurement comes back by one; what a person said stands."""
    if regression.who != states.ITSELF:
        return
    if regression.state == RegressionState.NOISE:
        states.move(session, regression, RegressionState.NEW, who=states.ITSELF, reason="measured again")
    elif regression.state == RegressionState.EXPECTED and sign.forgiven is None:
        reason = f"nothing forgives it at {sign.case} on {sign.device_class}"
        states.move(session, regression, RegressionState.NEW, who=states.ITSELF, reason=reason)


def _write(case: RegressionCase | None, regression: Regression, sign: Sign) -> RegressionCase:
    row = case or RegressionCase(
        regression_id=regression.id,
        kernel_id=sign.kernel.id,
        device_class=sign.device_class,
        case=sign.case,
        evidence=sign.evidence,
        revision_id=sign.revision.id,
        ratio=sign.ratio,
    )
    row.evidence, row.metric = sign.evidence, sign.metric
    row.perhaps = [each.id for each in sign.perhaps]
    row.revision_id, row.base_id = sign.revision.id, sign.base.id if sign.base else None
    row.evaluation_id = sign.evaluation_id
    row.ratio, row.low, row.high = sign.ratio, sign.low, sign.high
    row.allowed_slowdown = sign.allowed_slowdown
    if sign.revision.id not in row.standings:
        row.standings, row.fixed_by, row.kept = {sign.revision.id: sign.ratio}, None, None
    return row


def _is_same(case: RegressionCase, sign: Sign) -> bool:
    return case.revision_id == sign.revision.id and case.evidence == sign.evidence


def _cases(session: Session, regression: Regression) -> Sequence[RegressionCase]:
    return session.exec(select(RegressionCase).where(RegressionCase.regression_id == regression.id)).all()


def _revisions(session: Session, ids: Sequence[str]) -> Sequence[Revision]:
    return session.exec(select(Revision).where(col(Revision.id).in_(ids))).all()
