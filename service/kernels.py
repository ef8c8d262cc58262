"""A project's kernels as the API lists them, and the order of their revisions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import aliased
from sqlmodel import Session, col, select

from contract.api import KernelOut, KernelPage
from contract.devices import DeviceClass
from contract.suite import Case
from contract.views import Headline, KernelDetail
from service.metrics import BASELINE_PREFIX, OVER_BASELINE
from service.models import Kernel, Project, Revision, Series, Standing, Suite
from service.pages import cut

_FIRST_METRICS = ("time", "throughput", OVER_BASELINE, "of_baseline")
# In place of None, which databases sort on either end.
LAST = 2**31 - 1


def series_order() -> tuple[sa.SQLColumnExpression[Any], ...]:
    """(first-parent index, position, time, id) of a revision, None last: the order of a series on every database."""
    return (
        sa.func.coalesce(col(Revision.first_parent_index), LAST),
        sa.func.coalesce(col(Revision.position), LAST),
        col(Revision.created_at),
        col(Revision.id),
    )


def list_kernels(session: Session, project: Project, *, after: str | None, limit: int) -> KernelPage:
    """By name."""
    query = select(Kernel).where(Kernel.project_id == project.id).order_by(Kernel.name).limit(limit + 1)
    if after is not None:
        query = query.where(Kernel.name > after)
    rows, following = cut(session.exec(query).all(), limit, lambda row: row.name)
    return KernelPage(items=tuple(kernel_outs(session, project, rows)), next=following)


def kernel_outs(session: Session, project: Project, kernels: Sequence[Kernel]) -> list[KernelOut]:
    """Four queries. Classes, cases and metrics are the suite's first, in its order, then what else has a history."""
    ids = [kernel.id for kernel in kernels]
    suites = {
        row.id: row.content
        for row in session.exec(select(Suite).where(col(Suite.id).in_([kernel.suite_id for kernel in kernels]))).all()
    }
    series: dict[str, list[Any]] = {}
    columns = (col(Series.kernel_id), col(Series.device_class), col(Series.case), col(Series.metric))
    for row in session.execute(sa.select(*columns).where(columns[0].in_(ids)).order_by(col(Series.id))):
        series.setdefault(row.kernel_id, []).append(row)
    counted = sa.select(col(Revision.kernel_id), sa.func.count()).where(col(Revision.kernel_id).in_(ids))
    counts = {row[0]: row[1] for row in session.execute(counted.group_by(col(Revision.kernel_id)))}
    newest = _newest_labels(session, ids)
    return [
        _kernel_out(
            project,
            kernel,
            suite=suites.get(kernel.suite_id or "", {}),
            series=series.get(kernel.id, []),
            revisions=counts.get(kernel.id, 0),
            newest=newest.get(kernel.id),
        )
        for kernel in kernels
    ]


def kernel_detail(session: Session, project: Project, kernel: Kernel) -> KernelDetail:
    standings = session.exec(select(Standing.content).where(Standing.kernel_id == kernel.id)).all()
    lines = select(Series.device_class, Series.metric).where(Series.kernel_id == kernel.id, Series.case == "")
    static_metrics: dict[DeviceClass, tuple[str, ...]] = {}
    for device_class, metric in session.exec(lines.order_by(col(Series.metric))).all():
        klass = DeviceClass(device_class)
        static_metrics[klass] = (*static_metrics.get(klass, ()), metric)
    return KernelDetail(
        **dict(kernel_outs(session, project, [kernel])[0]),
        headlines=tuple(
            Headline(device_class=one["device_class"], case=one["case"], metric=one["metric"])
            for one in standings
            if one["case"] is not None and one["metric"] is not None
        ),
        static_metrics=static_metrics,
    )


def _newest_labels(session: Session, kernel_ids: Sequence[str]) -> dict[str, str]:
    """The label of the last revision of each mainline, else of the newest revision."""
    order = (col(Revision.mainline).desc(), *(part.desc() for part in series_order()))
    of_kernel = sa.select(col(Revision.id)).where(col(Revision.kernel_id) == col(Kernel.id)).correlate(Kernel)
    # By id, so that the order is read from its index without the rows.
    newest = of_kernel.order_by(*order).limit(1).scalar_subquery()
    one = aliased(Revision)
    query = sa.select(col(Kernel.id), col(one.label)).join(one, col(one.id) == newest)
    return {row[0]: row[1] for row in session.execute(query.where(col(Kernel.id).in_(kernel_ids)))}


def _kernel_out(
    project: Project,
    kernel: Kernel,
    *,
    suite: dict[str, Any],
    series: Sequence[Any],
    revisions: int,
    newest: str | None,
) -> KernelOut:
    metrics = {row.metric for row in series if not row.metric.startswith(BASELINE_PREFIX)}
    first = [metric for metric in _FIRST_METRICS if metric in metrics]
    return KernelOut(
        project=project.slug,
        name=kernel.name,
        operator=kernel.operator,
        summary=kernel.summary,
        device_classes=tuple(
            DeviceClass(name)
            for name in dict.fromkeys([*suite.get("device_classes", ()), *(row.device_class for row in series)])
        ),
        cases=tuple(dict.fromkeys([*_case_ids(suite), *(row.case for row in series if row.case)])),
        metrics=(*first, *sorted(metrics.difference(first))),
        revisions=revisions,
        newest=newest,
    )


def _case_ids(suite: dict[str, Any]) -> list[str]:
    return [Case.model_validate(each).id for each in suite.get("cases", ())]
