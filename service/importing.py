"""Histories that were measured elsewhere: revisions without bundle or commit, in the file's order, judged by margin.

A revision is told apart by the file's provenance and its label, so that the same file twice adds nothing. What is
stored doesn't change: another value for the same metric of the same revision is refused.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, cast

from sqlmodel import Session, col, select

from contract.api import ImportOut
from contract.outcomes import Outcome, State, Verdict
from service.columns import now
from service.history_file import BETTER, JUDGED, Line, Value, parse
from service.models import Comparison, Evaluation, Kernel, Measurement, Project, Revision, Series
from service.problems import ProblemError
from verdict import published

BASELINE_PREFIX = "baseline_"
OVER_BASELINE = "throughput_over_baseline"
_IMPORTED = "imported"
# No protocol of this project measured it.
_FOREIGN_PROTOCOL = 0


@dataclass(frozen=True)
class _Source:
    """Where the figures are from; `key` tells its revisions from those of other sources."""

    provenance: str
    margin: float

    @property
    def key(self) -> str:
        return hashlib.sha256(self.provenance.encode()).hexdigest()[:16]


def import_history(session: Session, *, project: Project, csv: str, provenance: str, margin: float) -> ImportOut:
    """Store the file's revisions, values and verdicts; raises ProblemError and stores nothing where it is wrong.

    `margin`: the relative difference between two published values that counts.
    """
    lines = parse(csv)
    # One import into a project at a time: two of the same file would add their revisions twice.
    session.exec(select(Project.id).where(Project.id == project.id).with_for_update()).one()
    source = _Source(provenance=provenance, margin=margin)
    by_kernel: dict[str, list[Line]] = {}
    for line in lines:
        by_kernel.setdefault(line.kernel, []).append(line)
    revisions = added = 0
    for name, own in by_kernel.items():
        kernel = _kernel(session, project=project, name=name)
        found, new = _revisions(session, kernel=kernel, lines=own, source=source)
        revisions += len(found)
        added += new
        series = _all_series(session, kernel)
        for line in own:
            _store(session, kernel=kernel, line=line, revisions=found, series=series, source=source)
    return ImportOut(
        kernels=tuple(by_kernel),
        revisions=revisions,
        added=added,
        metrics=sum(len(line.values) + len(line.baselines) for line in lines),
    )


def _kernel(session: Session, *, project: Project, name: str) -> Kernel:
    kernel = session.exec(select(Kernel).where(Kernel.project_id == project.id, Kernel.name == name)).first()
    if kernel is None:
        kernel = Kernel(project_id=project.id, name=name)
        session.add(kernel)
        session.flush()
    return kernel


def _revisions(
    session: Session, *, kernel: Kernel, lines: Iterable[Line], source: _Source
) -> tuple[dict[str, Revision], int]:
    """The revision of each label, and how many of them are new."""
    prefix = f"import:{source.key}:"
    known = {
        revision.identity: revision
        for revision in session.exec(
            select(Revision).where(Revision.kernel_id == kernel.id, Revision.origin == _IMPORTED)
        ).all()
    }
    found: dict[str, Revision] = {}
    new = 0
    for line in lines:
        for label in line.labels:
            if label in found:
                continue
            revision = known.get(prefix + label)
            if revision is None:
                new += 1
                revision = Revision(
                    kernel_id=kernel.id,
                    identity=prefix + label,
                    label=label,
                    summary=_summary(line, label),
                    mainline=True,
                    position=len(found),
                    origin=_IMPORTED,
                    provenance=source.provenance,
                    base_label=line.bases.get(label),
                )
                session.add(revision)
            found[label] = revision
    session.flush()
    return found, new


def _summary(line: Line, label: str) -> str:
    """The note beside the value that the revision is judged by."""
    for metric in JUDGED:
        for (owner, _, name), value in line.values.items():
            if owner == label and name == metric and value.note:
                return value.note
    return ""


def _all_series(session: Session, kernel: Kernel) -> dict[tuple[str, str, str], Series]:
    rows = session.exec(select(Series).where(Series.kernel_id == kernel.id)).all()
    return {(row.device_class, row.case, row.metric): row for row in rows}


def _store(
    session: Session,
    *,
    kernel: Kernel,
    line: Line,
    revisions: Mapping[str, Revision],
    series: dict[tuple[str, str, str], Series],
    source: _Source,
) -> None:
    evaluations = {
        label: _evaluation(session, kernel=kernel, line=line, label=label, revisions=revisions) for label in line.labels
    }
    session.flush()
    ids = [evaluation.id for evaluation in evaluations.values()]
    stored = {
        (row.evaluation_id, row.series_id): row.value
        for row in session.exec(select(Measurement).where(col(Measurement.evaluation_id).in_(ids))).all()
    }
    compared = set(
        session.exec(
            select(Comparison.evaluation_id, Comparison.case).where(col(Comparison.evaluation_id).in_(ids))
        ).all()
    )
    for value in (*line.values.values(), *_of_baselines(line)):
        row = _series(session, kernel=kernel, line=line, value=value, series=series)
        evaluation = evaluations[value.label]
        known = stored.get((evaluation.id, row.id))
        if known is None:
            session.add(
                Measurement(
                    series_id=row.id,
                    revision_id=evaluation.revision_id,
                    evaluation_id=evaluation.id,
                    value=value.value,
                )
            )
        elif known != value.value:
            raise ProblemError(
                409,
                "history-differs",
                f"line {value.line}, column value: {value.metric} of {value.label} is {known:g} already, from the same "
                f"provenance; a history isn't rewritten (name another provenance, or leave the line out)",
                field="csv",
            )
    for label, evaluation in evaluations.items():
        fresh = [
            comparison
            for comparison in _comparisons(line, label=label, evaluation=evaluation, margin=source.margin)
            if (evaluation.id, comparison.case) not in compared
        ]
        session.add_all(fresh)
        if any(comparison.verdict == Verdict.SLOWER for comparison in fresh):
            evaluation.outcome = Outcome.SLOWER
    session.flush()


def _evaluation(
    session: Session, *, kernel: Kernel, line: Line, label: str, revisions: Mapping[str, Revision]
) -> Evaluation:
    base = revisions[line.bases[label]] if label in line.bases else None
    base_key = base.id if base else ""
    known = session.exec(
        select(Evaluation).where(
            Evaluation.revision_id == revisions[label].id,
            Evaluation.device_class == line.device_class,
            Evaluation.base_key == base_key,
            Evaluation.origin == _IMPORTED,
        )
    ).first()
    if known is not None:
        return known
    moment = now()
    notes = [
        f"{value.metric}{f' ({value.case})' if value.case else ''}: {value.note}"
        for (owner, _, _), value in line.values.items()
        if owner == label and value.note and value.note != revisions[label].summary
    ]
    evaluation = Evaluation(
        kernel_id=kernel.id,
        revision_id=revisions[label].id,
        base_id=base.id if base else None,
        base_key=base_key,
        device_class=line.device_class,
        protocol_version=_FOREIGN_PROTOCOL,
        origin=_IMPORTED,
        state=State.FINISHED,
        outcome=Outcome.PASSED,
        summary="imported: measured elsewhere, not verified here",
        message="; ".join(notes) or None,
        created_at=moment,
        finished_at=moment,
    )
    session.add(evaluation)
    return evaluation


def _series(
    session: Session, *, kernel: Kernel, line: Line, value: Value, series: dict[tuple[str, str, str], Series]
) -> Series:
    key = (line.device_class, value.case, value.metric)
    if key not in series:
        series[key] = Series(
            kernel_id=kernel.id,
            device_class=line.device_class,
            case=value.case,
            metric=value.metric,
            unit=value.unit,
            better=BETTER.get(value.metric.removeprefix(BASELINE_PREFIX)),
        )
        session.add(series[key])
        session.flush()
    elif series[key].unit != value.unit:
        raise ProblemError(
            422,
            "bad-csv",
            f"line {value.line}, column unit: {value.unit!r}, but {value.metric} of this case is kept in "
            f"{series[key].unit!r}; allowed: {series[key].unit}",
            field="csv",
        )
    return series[key]


def _of_baselines(line: Line) -> list[Value]:
    """The baseline's values beside each revision on the same case, and the share of it where that can be told."""
    made: list[Value] = []
    for label, case in dict.fromkeys((label, case) for label, case, _ in line.values):
        beside = {metric: value for (where, metric), value in line.baselines.items() if where == case}
        for metric, value in beside.items():
            name = BASELINE_PREFIX + metric
            if (label, case, name) not in line.values:
                made.append(Value(value.line, label, case, name, value.value, value.unit, value.note))
        own = {metric: line.values[key] for metric in JUDGED if (key := (label, case, metric)) in line.values}
        if not own or OVER_BASELINE in own:
            continue
        for metric in ("throughput", "time"):
            if metric in own and metric in beside:
                mine, theirs = own[metric].value, beside[metric].value
                share = mine / theirs if JUDGED[metric] == "higher" else theirs / mine
                made.append(Value(own[metric].line, label, case, OVER_BASELINE, share, "ratio", ""))
                break
    return made


def _comparisons(line: Line, *, label: str, evaluation: Evaluation, margin: float) -> list[Comparison]:
    cases = dict.fromkeys(case for owner, case, _ in line.values if owner == label and case)
    base = line.bases.get(label)
    made: list[Comparison] = []
    for position, case in enumerate(cases):
        names = sorted({value.label for (where, _), value in line.baselines.items() if where == case})
        row = Comparison(
            evaluation_id=evaluation.id, position=position, case=case, baseline=", ".join(names)[:300] or None
        )
        metric = next((name for name in JUDGED if all((who, case, name) in line.values for who in (label, base))), None)
        if base is not None and metric is not None:
            judged = published(
                line.values[base, case, metric].value,
                line.values[label, case, metric].value,
                better=cast("Literal['lower', 'higher']", JUDGED[metric]),
                margin=margin,
            )
            row.verdict, row.ratio, row.reason = judged.verdict, judged.ratio, f"{metric}: {judged.reason}"
            row.measured, row.allowed_slowdown = "published", margin
        made.append(row)
    return made
