"""A finished evaluation of a mainline revision becomes signs of regressions, in the transaction that stored it."""

from __future__ import annotations

from sqlmodel import Session, col, select

from contract.outcomes import Outcome, State, Verdict
from service.metrics import BASELINE_PREFIX
from service.models import Comparison, Evaluation, Kernel, Revision, Series
from service.regressions import following, keeping, states, tracking
from service.regressions.order import key_of, unmeasured_between
from service.regressions.tables import RegressionCase

_SAYING = (Outcome.PASSED, Outcome.SLOWER, Outcome.INCONCLUSIVE)


def observe_revision(session: Session, revision: Revision) -> None:
    """Everything that is known of a revision that has just become one of the mainline."""
    query = select(Evaluation).where(Evaluation.revision_id == revision.id, Evaluation.state == State.FINISHED)
    for evaluation in session.exec(query.order_by(col(Evaluation.id))).all():
        observe(session, evaluation)


def observe_kernel(session: Session, kernel: Kernel, *, origin: str) -> None:
    """All evaluations of a kernel that came together, in the order of its history."""
    rows = session.exec(
        select(Evaluation, Revision)
        .join(Revision, col(Revision.id) == col(Evaluation.revision_id))
        .where(Evaluation.kernel_id == kernel.id, Evaluation.origin == origin)
    ).all()
    watches: dict[str, following.Watch] = {}
    opened: list[RegressionCase] = []
    for evaluation, revision in sorted(rows, key=lambda row: (key_of(row[1]), row[0].id)):
        if evaluation.base_id is not None and evaluation.state == State.FINISHED:
            device_class = evaluation.device_class
            if device_class not in watches:
                watches[device_class] = following.Watch(session, kernel_id=kernel.id, device_class=device_class)
            base = session.get_one(Revision, evaluation.base_id)
            opened += _observe_comparisons(
                session, kernel, evaluation, revision=revision, base=base, watch=watches[device_class]
            )
    for watch in watches.values():
        watch.store()
    elsewhere = select(Evaluation.id).where(Evaluation.kernel_id == kernel.id, Evaluation.origin != origin)
    if session.exec(elsewhere.limit(1)).first() is not None:
        _follow(session, [case for case in opened if case.fixed_by is None])
    tracking.rebuild_all(session, kernel)


def observe(session: Session, evaluation: Evaluation) -> None:
    """Open, join, withdraw and close regressions by what this evaluation says, and go on with its series. Doing so
    twice changes nothing. Evaluations that don't measure, and revisions beside the mainline, say nothing here."""
    if evaluation.state != State.FINISHED or evaluation.outcome not in _SAYING:
        return
    session.flush()
    revision = session.get_one(Revision, evaluation.revision_id)
    if not revision.mainline:
        return
    kernel = session.get_one(Kernel, evaluation.kernel_id)
    if evaluation.base_id is not None:
        watch = following.Watch(session, kernel_id=kernel.id, device_class=evaluation.device_class)
        base = session.get_one(Revision, evaluation.base_id)
        opened = _observe_comparisons(session, kernel, evaluation, revision=revision, base=base, watch=watch)
        watch.store()
        _follow(session, opened)
    tracking.advance(session, kernel, evaluation, revision=revision)


def _observe_comparisons(
    session: Session,
    kernel: Kernel,
    evaluation: Evaluation,
    *,
    revision: Revision,
    base: Revision,
    watch: following.Watch,
) -> list[RegressionCase]:
    """The slowdowns that this opened, or saw again."""
    rows = session.exec(
        select(Comparison).where(Comparison.evaluation_id == evaluation.id).order_by(col(Comparison.position))
    ).all()
    suspects: list[Revision] | None = None
    opened: list[RegressionCase] = []
    for row in rows:
        _withdraw(session, row, watch, revision=revision, base=base)
        watch.take(revision=revision, base=base, compared=row)
        if row.verdict not in {Verdict.SLOWER, Verdict.FASTER} or row.ratio is None:
            continue
        if row.verdict == Verdict.SLOWER and _explained(session, watch.of(row.case), revision=revision, base=base):
            continue
        if suspects is None:
            suspects = [*_unmeasured(session, kernel, evaluation, base=base, until=revision), revision]
        sign = keeping.Sign(
            kernel=kernel,
            revision=revision,
            base=base,
            suspects=suspects,
            device_class=evaluation.device_class,
            case=row.case,
            evidence="published" if row.measured == "published" else "side_by_side",
            ratio=row.ratio,
            low=row.low,
            high=row.high,
            allowed_slowdown=row.allowed_slowdown,
            evaluation_id=evaluation.id,
            forgiven=row.allowance,
        )
        regression, case = keeping.keep(session, sign)
        if row.verdict == Verdict.SLOWER:
            opened.append(case)
            if regression.state in states.OPEN:
                watch.add(case)
    return opened


def _follow(session: Session, cases: list[RegressionCase]) -> None:
    for case in cases:
        following.follow(session, case)


def _unmeasured(
    session: Session, kernel: Kernel, evaluation: Evaluation, *, base: Revision, until: Revision
) -> list[Revision]:
    series = session.exec(
        select(Series.id).where(
            Series.kernel_id == kernel.id,
            Series.device_class == evaluation.device_class,
            col(Series.metric).not_like(f"{BASELINE_PREFIX}%"),
        )
    ).all()
    return unmeasured_between(session, after=base, until=until, series_ids=series) if series else []


def _withdraw(session: Session, row: Comparison, watch: following.Watch, *, revision: Revision, base: Revision) -> None:
    """The same two measured again, and not slower any more."""
    if row.verdict not in {Verdict.SAME, Verdict.FASTER}:
        return
    for case in [each.case for each in watch.of(row.case)]:
        if case.revision_id == revision.id and case.base_id == base.id:
            watch.drop(case)
            keeping.withdraw(session, case, why=f"measured again with more evidence: {row.reason or row.verdict}")


def _explained(session: Session, still_open: list[following.Followed], *, revision: Revision, base: Revision) -> bool:
    """Slower than a revision from before an open slowdown that still stands: no news. In an imported history each
    revision's base is its parent, so that it doesn't contain the slow one."""
    if revision.origin == "imported":
        return False
    for each in still_open:
        case = each.case
        culprit = session.get_one(Revision, case.revision_id)
        between = key_of(base) < key_of(culprit) < key_of(revision)
        if between and case.fixed_by is None and case.base_id == base.id and (each.standing(revision) or 0.0) > 1.0:
            return True
    return False
