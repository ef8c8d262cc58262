"""What later revisions of the mainline do to an open regression: multiply on, go round it, bring it back."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm.attributes import flag_modified
from sqlmodel import Session, col, select

from contract.outcomes import State, Verdict
from service.models import Comparison, Evaluation, Revision
from service.regressions import keeping, states
from service.regressions.order import key_of
from service.regressions.tables import Regression, RegressionCase

# Of how many later revisions the standing is kept.
_MOST_STANDINGS = 100
# What published values without an allowed slowdown, or steps of a series, may differ by.
_DEFAULT_ALLOWED = 0.01


class Followed:
    """One case while measurements are taken in: in memory, until `store`."""

    def __init__(self, session: Session, case: RegressionCase) -> None:
        self.case = case
        self._culprit = key_of(session.get_one(Revision, case.revision_id))
        self._level = session.get(Revision, case.base_id) if case.base_id else None
        # The case's own dictionary from here on: others see in it what was taken in, and `store` says that it changed.
        case.standings = self._standings = dict(case.standings)
        self._changed = False

    @property
    def current(self) -> bool:
        """Whether the case still stands where this began, and wasn't written anew for another revision."""
        return self.case.standings is self._standings

    def standing(self, revision: Revision) -> float | None:
        return self._standings.get(revision.id)

    def take(self, *, revision: Revision, base: Revision, compared: Comparison) -> bool:
        """Whether the case is back at its level with this."""
        case, level = self.case, self._level
        if compared.ratio is None or key_of(revision) <= self._culprit:
            return False
        if base.id in self._standings:
            standing, round_it = self._standings[base.id] * compared.ratio, False
        elif level is not None and base.id == level.id:
            # An imported history names each revision's own base; elsewhere a base may be any that was asked for.
            standing, round_it = compared.ratio, revision.origin == "imported"
        else:
            return False
        if level is not None and revision.digest is not None and revision.digest == level.digest:
            standing = 1.0
        self._standings[revision.id] = standing
        self._changed = True
        if len(self._standings) > _MOST_STANDINGS:
            del self._standings[next(each for each in self._standings if each != case.revision_id)]
        if case.fixed_by is None and _is_back(case, standing, compared):
            case.fixed_by, case.kept = revision.id, not round_it
            return True
        return False

    def store(self, session: Session) -> None:
        if self._changed and self.current:
            flag_modified(self.case, "standings")
            session.add(self.case)
            self._changed = False


class Watch:
    """The cases of a kernel's open slowdowns on one class while evaluations are taken in, the oldest first."""

    def __init__(self, session: Session, *, kernel_id: str, device_class: str) -> None:
        self._session = session
        found = open_cases(session, kernel_id=kernel_id, device_class=device_class)
        self._followed = {each.id: Followed(session, each) for each in found}

    def of(self, case: str) -> list[Followed]:
        return [each for each in self._followed.values() if each.case.case == case]

    def add(self, case: RegressionCase) -> None:
        known = self._followed.get(case.id)
        if known is None or not known.current:
            self._followed[case.id] = Followed(self._session, case)

    def drop(self, case: RegressionCase) -> None:
        self._followed.pop(case.id, None)

    def take(self, *, revision: Revision, base: Revision, compared: Comparison) -> None:
        for each in self.of(compared.case):
            if each.take(revision=revision, base=base, compared=compared):
                self._close(each)

    def store(self) -> None:
        for each in self._followed.values():
            each.store(self._session)
        self._session.flush()

    def _close(self, fixed: Followed) -> None:
        fixed.store(self._session)
        regression = self._session.get_one(Regression, fixed.case.regression_id)
        keeping.close_if_fixed(self._session, regression)
        if regression.state not in states.OPEN:
            own = [each for each in self._followed.values() if each.case.regression_id == regression.id]
            for each in own:
                each.store(self._session)
                self.drop(each.case)


def follow(session: Session, case: RegressionCase) -> None:
    """Take in what was measured of this case already, in the order of the history, until it is back."""
    followed = Followed(session, case)
    rows = session.execute(_compared(case))
    for revision, base, row in sorted(rows, key=lambda row: key_of(row[0])):
        if followed.take(revision=revision, base=base, compared=row):
            break
    followed.store(session)
    session.flush()
    keeping.close_if_fixed(session, session.get_one(Regression, case.regression_id))


def open_cases(session: Session, *, kernel_id: str, device_class: str) -> list[RegressionCase]:
    """The cases of open slowdowns, the oldest first."""
    query = (
        select(RegressionCase)
        .join(Regression, col(Regression.id) == col(RegressionCase.regression_id))
        .where(
            RegressionCase.kernel_id == kernel_id,
            RegressionCase.device_class == device_class,
            Regression.direction == "slower",
            col(Regression.state).in_(states.OPEN),
        )
        .order_by(col(RegressionCase.id))
    )
    return list(session.exec(query).all())


def _compared(case: RegressionCase) -> sa.Select[Any]:
    base = sa.orm.aliased(Revision)
    newest = (
        sa.select(sa.func.max(col(Evaluation.id)))
        .where(
            col(Evaluation.kernel_id) == case.kernel_id,
            col(Evaluation.device_class) == case.device_class,
            col(Evaluation.state) == State.FINISHED,
        )
        .group_by(col(Evaluation.revision_id), col(Evaluation.base_id))
    )
    columns: list[Any] = [Revision, base, Comparison]
    return (
        sa.select(*columns)
        .select_from(Comparison)
        .join(Evaluation, col(Evaluation.id) == col(Comparison.evaluation_id))
        .join(Revision, col(Revision.id) == col(Evaluation.revision_id))
        .join(base, col(base.id) == col(Evaluation.base_id))
        .options(sa.orm.defer(Comparison.pairs))  # type: ignore[arg-type]
        .where(
            col(Evaluation.id).in_(newest),
            col(Comparison.case) == case.case,
            col(Comparison.ratio).is_not(None),
            col(Revision.mainline).is_(True),
        )
    )


def _is_back(case: RegressionCase, standing: float, compared: Comparison) -> bool:
    if standing > 1.0 + (case.allowed_slowdown or _DEFAULT_ALLOWED) or compared.verdict == Verdict.SLOWER:
        return False
    # An undecided measurement proves nothing; published values are undecided where they differ by less than a margin.
    return compared.verdict != Verdict.INCONCLUSIVE or compared.measured == "published"
