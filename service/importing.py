"""Histories that were measured elsewhere: revisions without bundle or commit, in the file's order, judged by margin.

A revision is told apart by the file's provenance and its label, so that the same file twice adds nothing. What is
stored doesn't change: another value for the same metric of the same revision is refused, and so is another order. A
later file of the same provenance may add revisions anywhere.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, cast

from sqlmodel import Session, col, select

from contract.api import ImportOut
from contract.outcomes import Outcome, State, Verdict
from service.columns import now
from service.history_file import BETTER, JUDGED, Line, Value, merged, parse
from service.kernels import series_order
from service.metrics import BASELINE_PREFIX, OVER_BASELINE
from service.models import Comparison, Evaluation, Kernel, Measurement, Project, Revision, Series
from service.problems import ProblemError
from service.regressions.watching import observe_kernel
from service.standings import refresh_all_standings, refresh_standings
from verdict import published

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
        found, new, moved = _revisions(session, kernel=kernel, lines=own, source=source)
        revisions += len(found)
        added += new
        series = _all_series(session, kernel)
        for line in own:
            _store(session, kernel=kernel, line=line, revisions=found, series=series, source=source)
        if moved:
            refresh_all_standings(session, kernel)
        else:
            refresh_standings(session, kernel, [line.device_class for line in own])
        observe_kernel(session, kernel, origin=_IMPORTED)
    return ImportOut(
        kernels=tuple(by_kernel),
        revisions=revisions,
        added=added,
        metrics=sum(len(of) for line in lines for group in (line.values, line.baselines) for of in group.values()),
    )


def _kernel(session: Session, *, project: Project, name: str) -> Kernel:
    kernel = session.exec(select(Kernel).where(Kernel.project_id == project.id, Kernel.name == name)).first()
    if kernel is None:
        kernel = Kernel(project_id=project.id, name=name)
        session.add(kernel)
        session.flush()
    return kernel


def _revisions(
    session: Session, *, kernel: Kernel, lines: Sequence[Line], source: _Source
) -> tuple[dict[str, Revision], int, bool]:
    """The revision of each label of the file, how many of them are new, and whether one came before an older one."""
    prefix = f"import:{source.key}:"
    known = {
        revision.identity: revision
        for revision in session.exec(
            select(Revision)
            .where(Revision.kernel_id == kernel.id, Revision.origin == _IMPORTED)
            .order_by(*series_order())
        ).all()
    }
    order = [revision.label for identity, revision in known.items() if identity.startswith(prefix)]
    for line in lines:
        order = merged(order, line)
    places = {label: place for place, label in enumerate(order)}
    found: dict[str, Revision] = {}
    new = 0
    for line in lines:
        for label in line.values:
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
                    position=places[label],
                    origin=_IMPORTED,
                    provenance=source.provenance,
                    base_label=line.bases.get(label),
                )
                session.add(revision)
            found[label] = revision
    moved = False
    for label, place in places.items():
        revision = found.get(label) or known[prefix + label]
        moved = moved or revision.position != place
        revision.position = place
    session.flush()
    return found, new, moved


def _summary(line: Line, label: str) -> str:
    """The note beside the value that the revision is judged by."""
    for metric in JUDGED:
        for (_, name), value in line.values[label].items():
            if name == metric and value.note:
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
    evaluations = _evaluations(session, kernel=kernel, line=line, revisions=revisions)
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
    own = [value for of in line.values.values() for value in of.values()]
    for value in (*own, *_of_baselines(line)):
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
        verdicts = {comparison.verdict for comparison in fresh}
        for verdict, outcome in ((Verdict.SLOWER, Outcome.SLOWER), (Verdict.INCONCLUSIVE, Outcome.INCONCLUSIVE)):
            if verdict in verdicts and evaluation.outcome != Outcome.SLOWER:
                evaluation.outcome = outcome
    session.flush()


def _evaluations(
    session: Session, *, kernel: Kernel, line: Line, revisions: Mapping[str, Revision]
) -> dict[str, Evaluation]:
    """Each label's evaluation on the line's class against its base; those that are missing are made."""
    known = {
        (row.revision_id, row.base_key): row
        for row in session.exec(
            select(Evaluation).where(
                Evaluation.kernel_id == kernel.id,
                Evaluation.device_class == line.device_class,
                Evaluation.origin == _IMPORTED,
            )
        ).all()
    }
    moment = now()
    found: dict[str, Evaluation] = {}
    for label in line.values:
        revision = revisions[label]
        base = revisions[line.bases[label]] if label in line.bases else None
        base_key = base.id if base else ""
        evaluation = known.get((revision.id, base_key))
        if evaluation is None:
            evaluation = Evaluation(
                kernel_id=kernel.id,
                revision_id=revision.id,
                base_id=base.id if base else None,
                base_key=base_key,
                device_class=line.device_class,
                protocol_version=_FOREIGN_PROTOCOL,
                origin=_IMPORTED,
                state=State.FINISHED,
                outcome=Outcome.PASSED,
                summary="imported: measured elsewhere, not verified here",
                message=_other_notes(line, label, revision.summary),
                created_at=moment,
                finished_at=moment,
            )
            session.add(evaluation)
        found[label] = evaluation
    session.flush()
    return found


def _other_notes(line: Line, label: str, summary: str) -> str | None:
    notes = [
        f"{metric}{f' ({case})' if case else ''}: {value.note}"
        for (case, metric), value in line.values[label].items()
        if value.note and value.note != summary
    ]
    return "; ".join(notes) or None


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
    for label, values in line.values.items():
        for case in dict.fromkeys(case for case, _ in values):
            beside = line.baselines.get(case, {})
            for metric, value in beside.items():
                name = BASELINE_PREFIX + metric
                if (case, name) not in values:
                    made.append(replace(value, label=label, metric=name))
            if (case, OVER_BASELINE) in values:
                continue
            if share := values.get((case, "of_baseline")):
                made.append(replace(share, metric=OVER_BASELINE))
                continue
            for metric in ("throughput", "time"):
                own = values.get((case, metric))
                if own and metric in beside and beside[metric].unit == own.unit:
                    ratio = own.value / beside[metric].value
                    speed = ratio if JUDGED[metric] == "higher" else 1.0 / ratio
                    made.append(replace(own, metric=OVER_BASELINE, value=speed, unit="ratio"))
                    break
    return made


def _comparisons(line: Line, *, label: str, evaluation: Evaluation, margin: float) -> list[Comparison]:
    head, base = line.values[label], line.values.get(line.bases.get(label, ""), {})
    made: list[Comparison] = []
    for position, case in enumerate(dict.fromkeys(case for case, _ in head if case)):
        names = sorted({value.label for value in line.baselines.get(case, {}).values()})
        row = Comparison(
            evaluation_id=evaluation.id, position=position, case=case, baseline=", ".join(names)[:300] or None
        )
        metric = next((name for name in JUDGED if (case, name) in head and (case, name) in base), None)
        if metric is not None:
            better = cast("Literal['lower', 'higher']", JUDGED[metric])
            judged = published(base[case, metric].value, head[case, metric].value, better=better, margin=margin)
            row.verdict, row.ratio, row.reason = judged.verdict, judged.ratio, f"{metric}: {judged.reason}"
            row.measured, row.allowed_slowdown = "published", margin
        made.append(row)
    return made
