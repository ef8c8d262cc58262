"""A plan's targets -> revisions and evaluations, in one transaction. What was answered before is not asked again."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from sqlalchemy import desc
from sqlalchemy.orm import aliased
from sqlmodel import Session, col, select

from contract import bundle
from contract.devices import DeviceClass
from contract.job import PROTOCOL_VERSION
from contract.outcomes import Outcome
from contract.suite import Suite
from contract.text import one_line
from service.bases import position_of
from service.columns import now
from service.database import insert_if_missing
from service.dispatch import Wake, wake_of
from service.evaluations import NO_ANSWER, next_repeat, queue
from service.github.plans import Plan, Planned, Preview, Target, Version
from service.github.tables import GithubGate, GithubGateEvaluation
from service.kernels import series_order
from service.models import Bundle, Evaluation, Kernel, Node, Project, Revision
from service.models import Suite as SuiteRow
from service.projects import keep_suite
from service.regressions.watching import observe_revision
from service.settings import Settings
from service.standings import refresh_all_standings
from service.states import ENDED
from service.store import Store
from service.text import clean_json

_MEASURED = (Outcome.PASSED, Outcome.SLOWER, Outcome.INCONCLUSIVE)


@dataclass(frozen=True, kw_only=True)
class Question:
    """What is asked of one class."""

    kernel: Kernel
    suite_row: SuiteRow
    head: Revision
    base: Revision | None
    device_class: DeviceClass
    build_only: bool


def store_bundles(store: Store, planned: Planned) -> dict[str, int]:
    """Put the plan's bundles where nodes fetch them; the size of each archive, by digest."""
    sizes = {}
    for digest, files in planned.bundles.items():
        archive = bundle.pack(files)
        store.put_bundle(digest, archive)
        sizes[digest] = len(archive)
    return sizes


def queue_plan(
    session: Session,
    *,
    gate: GithubGate,
    project: Project,
    planned: Planned,
    sizes: dict[str, int],
    place: int | None,
    settings: Settings,
) -> list[Wake]:
    """The evaluations of the plan's targets and previews, linked to the gate; those to be published. `place`: beside
    which place of the line the revisions hang."""
    wakes: list[Wake] = []
    plan = planned.plan
    asked: list[tuple[int, Target | Preview, bool]] = [
        (number, each, False) for number, each in enumerate(plan.targets)
    ]
    asked += [(number, each, True) for number, each in enumerate(plan.previews)]
    for number, target, preview in asked:
        kernel = kernel_for(session, project=project, suite=target.suite, trusted=not preview)
        suite_row = keep_suite(session, kernel=kernel, suite=target.suite)
        revisions = Revisions(session=session, kernel=kernel, planned=planned, sizes=sizes)
        head = revisions.beside(target.head, place=place)
        base = revisions.base(target.base, place=place) if target.base else None
        for device_class, build_only in classes_of(session, target.suite, settings=settings):
            question = Question(
                kernel=kernel,
                suite_row=suite_row,
                head=head,
                base=base,
                device_class=device_class,
                build_only=build_only,
            )
            evaluation = _answered(session, question)
            if evaluation is None:
                evaluation = _ask(session, question, settings=settings)
                wakes.append(wake_of(evaluation))
            link(session, gate, evaluation, target=number, preview=preview)
    return wakes


def with_new_bases(session: Session, *, project: Project, plan: Plan) -> Plan:
    """The plan, saying of each base whether this is the first time that it is measured."""
    targets = [
        target
        if target.base is None or _was_measured(session, project=project, kernel=target.kernel, version=target.base)
        else target.model_copy(update={"base_from": f"{target.base_from}, which was never measured: it is now"})
        for target in plan.targets
    ]
    return plan.model_copy(update={"targets": tuple(targets)})


def _was_measured(session: Session, *, project: Project, kernel: str, version: Version) -> bool:
    query = (
        select(Evaluation.id)
        .join(Revision, col(Revision.id) == col(Evaluation.revision_id))
        .join(Kernel, col(Kernel.id) == col(Revision.kernel_id))
        .where(
            Kernel.project_id == project.id,
            Kernel.name == kernel,
            Revision.digest == version.digest,
            col(Evaluation.outcome).in_(_MEASURED),
        )
    )
    return session.exec(query.limit(1)).first() is not None


def repeat(session: Session, evaluation: Evaluation, *, settings: Settings) -> Evaluation:
    """The same question once more; its verdict pools the evidence of those before."""
    same = {
        name: getattr(evaluation, name)
        for name in ("revision_id", "device_class", "base_key", "suite_digest", "protocol_version", "build_only")
    }
    again = Evaluation(
        **same,
        kernel_id=evaluation.kernel_id,
        base_id=evaluation.base_id,
        suite_id=evaluation.suite_id,
        repeat=next_repeat(session, same),
        priority="gate",
    )
    return queue(session, again, settings=settings)


def link(session: Session, gate: GithubGate, evaluation: Evaluation, *, target: int, preview: bool) -> None:
    if session.get(GithubGateEvaluation, (gate.id, evaluation.id)) is None:
        session.add(GithubGateEvaluation(gate_id=gate.id, evaluation_id=evaluation.id, target=target, preview=preview))
        session.flush()


def classes_of(session: Session, suite: Suite, *, settings: Settings) -> list[tuple[DeviceClass, bool]]:
    """Where to evaluate, and whether only to build there: on a class that the policy asks no more of and of which no
    card is at hand."""
    silent_since = now() - timedelta(seconds=settings.node_offline_after_s)
    query = select(Node.device_class).where(col(Node.healthy).is_(True), col(Node.last_seen_at) >= silent_since)
    at_hand = set(session.exec(query).all())
    policy = suite.policy
    wanted = dict.fromkeys((*suite.device_classes, *policy.required_device_classes))
    return [(each, each in policy.build_only_device_classes and each.value not in at_hand) for each in wanted]


def kernel_for(session: Session, *, project: Project, suite: Suite, trusted: bool) -> Kernel:
    """The kernel's row, made where it is missing. A trusted suite becomes its first one, never a later one: only a
    push to the default branch brings those."""
    query = select(Kernel).where(Kernel.project_id == project.id, Kernel.name == suite.kernel).with_for_update()
    kernel = session.exec(query).first()
    if kernel is None:
        kernel = Kernel(project_id=project.id, name=suite.kernel, operator=suite.operator)
        kernel.summary = one_line(suite.summary, 1000)
        session.add(kernel)
        session.flush()
    if kernel.suite_id is None and trusted:
        kernel.operator = suite.operator
        kernel.listed = list(suite.revisions)
        kernel.suite_id = keep_suite(session, kernel=kernel, suite=suite).id
        session.add(kernel)
        session.flush()
    return kernel


@dataclass(frozen=True, kw_only=True)
class Revisions:
    """The rows of a plan's versions of one kernel: made where they are missing."""

    session: Session
    kernel: Kernel
    planned: Planned
    sizes: dict[str, int]

    def beside(self, version: Version, *, place: int | None) -> Revision:
        """The row of this bundle at this commit, which need not be on the line."""
        return self._known(version) or self._made(version, place=place)

    def base(self, version: Version, *, place: int | None) -> Revision:
        """The same; but where the line has this very bundle, its newest point."""
        on_line = select(Revision).where(
            Revision.kernel_id == self.kernel.id, Revision.digest == version.digest, col(Revision.mainline).is_(True)
        )
        newest = on_line.order_by(*(part.desc() for part in series_order())).limit(1)
        return self.session.exec(newest).first() or self.beside(version, place=place)

    def on_line(self, version: Version, *, place: int, branch: str) -> Revision:
        """The row of this bundle at this commit, as a point of the line."""
        row = self._known(version)
        if row is None:
            return self._made(version, place=place, branch=branch, mainline=True)
        row.first_parent_index = place
        self.session.add(row)
        if not row.mainline:
            row.mainline, row.pushed_away, row.branch = True, False, one_line(branch, 255)
            refresh_all_standings(self.session, self.kernel)
            observe_revision(self.session, row)
        return row

    def _known(self, version: Version) -> Revision | None:
        query = select(Revision).where(
            Revision.kernel_id == self.kernel.id, Revision.identity == f"{version.digest}:{version.commit}"
        )
        return self.session.exec(query).first()

    def _made(
        self, version: Version, *, place: int | None, branch: str | None = None, mainline: bool = False
    ) -> Revision:
        if self.session.get(Bundle, version.digest) is None:
            insert_if_missing(self.session, Bundle(digest=version.digest, bytes=self.sizes[version.digest]))
        manifest = bundle.check(self.planned.bundles[version.digest])
        row = Revision(
            kernel_id=self.kernel.id,
            identity=f"{version.digest}:{version.commit}",
            label=manifest.label,
            summary=one_line(manifest.summary, 300),
            digest=version.digest,
            commit=version.commit,
            branch=one_line(branch, 255) if branch else None,
            mainline=mainline,
            first_parent_index=place,
            position=position_of(manifest.label, self.kernel.listed),
            manifest=clean_json(manifest.model_dump(mode="json")),
        )
        self.session.add(row)
        self.session.flush()
        return row


def _answered(session: Session, question: Question) -> Evaluation | None:
    """The newest evaluation of the same bundles by the same suite, finished with an answer or on its way to one."""
    head, base = aliased(Revision), aliased(Revision)
    query = (
        select(Evaluation)
        .join(head, col(head.id) == col(Evaluation.revision_id))
        .where(
            Evaluation.kernel_id == question.kernel.id,
            head.digest == question.head.digest,
            Evaluation.device_class == question.device_class,
            Evaluation.suite_digest == question.suite_row.digest,
            Evaluation.protocol_version == PROTOCOL_VERSION,
            col(Evaluation.build_only).is_(question.build_only),
            col(Evaluation.cancel_requested).is_(False),
            col(Evaluation.outcome).is_(None) | col(Evaluation.outcome).not_in(NO_ANSWER),
        )
    )
    if question.base is None:
        query = query.where(Evaluation.base_key == "")
    else:
        query = query.join(base, col(base.id) == col(Evaluation.base_id)).where(base.digest == question.base.digest)
    return session.exec(query.order_by(desc(col(Evaluation.id))).limit(1)).first()


def _ask(session: Session, question: Question, *, settings: Settings) -> Evaluation:
    same: dict[str, Any] = {
        "revision_id": question.head.id,
        "device_class": question.device_class,
        "base_key": question.base.id if question.base else "",
        "suite_digest": question.suite_row.digest,
        "protocol_version": PROTOCOL_VERSION,
        "build_only": question.build_only,
    }
    evaluation = Evaluation(
        **same,
        kernel_id=question.kernel.id,
        base_id=question.base.id if question.base else None,
        suite_id=question.suite_row.id,
        repeat=next_repeat(session, same),
        priority="gate",
    )
    return queue(session, evaluation, settings=settings)


def unfinished(session: Session, revisions: Sequence[Revision]) -> Sequence[Evaluation]:
    query = select(Evaluation).where(
        col(Evaluation.revision_id).in_([row.id for row in revisions]), col(Evaluation.state).not_in(ENDED)
    )
    return session.exec(query).all()


def linked(session: Session, gate: GithubGate) -> Sequence[tuple[GithubGateEvaluation, Evaluation]]:
    query = (
        select(GithubGateEvaluation, Evaluation)
        .join(Evaluation, col(Evaluation.id) == GithubGateEvaluation.evaluation_id)
        .where(GithubGateEvaluation.gate_id == gate.id)
        .order_by(col(GithubGateEvaluation.target), Evaluation.id)
    )
    return session.exec(query).all()
