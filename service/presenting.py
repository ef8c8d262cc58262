"""Rows -> the API's resources. A page is loaded in a fixed number of queries, however long it is."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import desc
from sqlalchemy.orm import defer
from sqlmodel import Session, col, select

from contract.api import AttemptOut, BaseRef, EvaluationOut, RevisionOut
from contract.report import CaseResult, Check, Metric
from contract.verdicts import Judgement
from service.models import (
    Attempt,
    CheckResult,
    Comparison,
    Evaluation,
    Kernel,
    Measurement,
    Project,
    Revision,
    Series,
)
from service.reproducing import reproduce_command

_LEFT_OUT: dict[str, Any] = {"stages": (), "statics": (), "base_statics": (), "environment": None}


def revision_outs(session: Session, revisions: Sequence[Revision]) -> list[RevisionOut]:
    ids = [revision.id for revision in revisions]
    kernels, projects = _owners(session, {revision.kernel_id for revision in revisions})
    newest_first = select(Evaluation.id, Evaluation.revision_id).where(
        col(Evaluation.revision_id).in_(ids), Evaluation.origin == "submitted"
    )
    evaluations: dict[str, list[str]] = defaultdict(list)
    for evaluation_id, revision_id in session.exec(newest_first.order_by(desc(col(Evaluation.id)))).all():
        evaluations[revision_id].append(evaluation_id)
    return [
        RevisionOut(
            id=revision.id,
            project=projects[kernels[revision.kernel_id].project_id].slug,
            kernel=kernels[revision.kernel_id].name,
            label=revision.label,
            digest=revision.digest,
            summary=revision.summary,
            commit=revision.commit,
            branch=revision.branch,
            mainline=revision.mainline,
            origin=revision.origin,
            provenance=revision.provenance,
            created_at=revision.created_at,
            evaluations=tuple(evaluations[revision.id]),
        )
        for revision in revisions
    ]


def evaluation_outs(
    session: Session, evaluations: Sequence[Evaluation], *, samples: bool = False, brief: bool = False
) -> list[EvaluationOut]:
    """`samples`: with every sample and pair, which can be a megabyte each. `brief`: without what a list doesn't show:
    cases, checks, stages, machine code and environment."""
    ids = [evaluation.id for evaluation in evaluations]
    kernels, projects = _owners(session, {evaluation.kernel_id for evaluation in evaluations})
    wanted = {evaluation.revision_id for evaluation in evaluations} | {
        evaluation.base_id for evaluation in evaluations if evaluation.base_id
    }
    revisions = {row.id: row for row in session.exec(select(Revision).where(col(Revision.id).in_(wanted))).all()}
    attempts = _grouped(
        session.exec(select(Attempt).where(col(Attempt.evaluation_id).in_(ids)).order_by(Attempt.id)).all()
    )
    checks: dict[str, list[CheckResult]] = (
        defaultdict(list)
        if brief
        else _grouped(
            session.exec(
                select(CheckResult).where(col(CheckResult.evaluation_id).in_(ids)).order_by(col(CheckResult.position))
            ).all()
        )
    )
    cases: dict[str, list[CaseResult]] = defaultdict(list) if brief else _cases(session, ids, samples=samples)
    outs = [
        _evaluation_out(
            evaluation,
            project=projects[kernels[evaluation.kernel_id].project_id].slug,
            kernel=kernels[evaluation.kernel_id],
            revision=revisions[evaluation.revision_id],
            base=revisions[evaluation.base_id] if evaluation.base_id else None,
            attempts=attempts[evaluation.id],
            checks=checks[evaluation.id],
            cases=cases[evaluation.id],
        )
        for evaluation in evaluations
    ]
    return [out.model_copy(update=_LEFT_OUT) for out in outs] if brief else outs


def evaluation_out(session: Session, evaluation: Evaluation, *, samples: bool = False) -> EvaluationOut:
    return evaluation_outs(session, [evaluation], samples=samples)[0]


def _evaluation_out(
    row: Evaluation,
    *,
    project: str,
    kernel: Kernel,
    revision: Revision,
    base: Revision | None,
    attempts: Sequence[Attempt],
    checks: Sequence[CheckResult],
    cases: Sequence[CaseResult],
) -> EvaluationOut:
    return EvaluationOut(
        id=row.id,
        project=project,
        kernel=kernel.name,
        revision=_reference(revision),
        base=_reference(base) if base else None,
        device_class=row.device_class,
        suite_digest=row.suite_digest or None,
        protocol_version=row.protocol_version,
        repeat=row.repeat,
        build_only=row.build_only,
        profile=row.profile,
        state=row.state,
        outcome=row.outcome,
        reason=row.reason,
        message=row.message,
        summary=row.summary,
        stage=row.stage,
        progress=row.progress,
        created_at=row.created_at,
        leased_at=row.leased_at,
        finished_at=row.finished_at,
        attempts=tuple(
            AttemptOut(node=each.node, started_at=each.started_at, ended_at=each.ended_at, end=each.end)
            for each in attempts
        ),
        stages=row.stages,
        left_out=row.left_out,
        environment=row.environment,
        statics=row.statics,
        base_statics=row.base_statics,
        checks=tuple(_check(check) for check in checks),
        cases=tuple(cases),
        reproduce=reproduce_command(row, kernel=kernel, head=revision, base=base),
    )


def _cases(session: Session, ids: Sequence[str], *, samples: bool) -> dict[str, list[CaseResult]]:
    metrics: dict[tuple[str, str], list[Metric]] = defaultdict(list)
    measured = (
        select(Measurement, Series)
        .join(Series, col(Series.id) == Measurement.series_id)
        .where(col(Measurement.evaluation_id).in_(ids))
        .order_by(Measurement.id)
    )
    if not samples:
        measured = measured.options(defer(Measurement.samples))  # type: ignore[arg-type]
    for measurement, series in session.exec(measured).all():
        metrics[measurement.evaluation_id, series.case].append(
            Metric(
                name=series.metric,
                unit=series.unit,
                value=measurement.value,
                low=measurement.low,
                high=measurement.high,
                better=series.better,
                samples=tuple(measurement.samples) if samples else (),
            )
        )
    compared = select(Comparison).where(col(Comparison.evaluation_id).in_(ids)).order_by(col(Comparison.position))
    if not samples:
        compared = compared.options(defer(Comparison.pairs))  # type: ignore[arg-type]
    cases: dict[str, list[CaseResult]] = defaultdict(list)
    for row in session.exec(compared).all():
        cases[row.evaluation_id].append(
            CaseResult(
                case=row.case,
                skipped=row.skipped,
                base_skipped=row.base_skipped,
                metrics=tuple(metrics[row.evaluation_id, row.case]),
                baseline=row.baseline,
                pairs=row.pairs if samples else (),
                same_artifact=row.same_artifact,
                spread_floor=row.spread_floor,
                judgement=_judgement(row),
                held_s=row.held_s,
            )
        )
    return cases


def _judgement(row: Comparison) -> Judgement | None:
    if row.verdict is None:
        return None
    return Judgement(
        verdict=row.verdict,
        ratio=row.ratio,
        interval=(row.low, row.high) if row.low is not None and row.high is not None else None,
        smallest_detectable=row.smallest_detectable,
        reason=row.reason or "",
    )


def _check(row: CheckResult) -> Check:
    return Check(
        case=row.case,
        family=row.family,
        passed=row.passed,
        error=row.error,
        bound=row.bound,
        of_bound=row.of_bound,
        reason=row.reason,
        message=row.message,
    )


def _reference(revision: Revision) -> BaseRef:
    return BaseRef(id=revision.id, label=revision.label, digest=revision.digest)


def _owners(session: Session, kernel_ids: set[str]) -> tuple[dict[str, Kernel], dict[str, Project]]:
    kernels = session.exec(select(Kernel).where(col(Kernel.id).in_(kernel_ids))).all()
    projects = session.exec(select(Project).where(col(Project.id).in_({kernel.project_id for kernel in kernels}))).all()
    return {row.id: row for row in kernels}, {row.id: row for row in projects}


def _grouped(rows: Iterable[Any]) -> dict[str, list[Any]]:
    groups: dict[str, list[Any]] = defaultdict(list)
    for row in rows:
        groups[row.evaluation_id].append(row)
    return groups
