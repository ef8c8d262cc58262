"""A project at a glance, in six queries however many kernels it has."""

from __future__ import annotations

from datetime import UTC, datetime

import sqlalchemy as sa
from sqlmodel import Session, col, select

from contract.devices import DeviceClass
from contract.outcomes import State
from contract.views import Overview, Queue, Standing
from service.models import Evaluation, Kernel, Project
from service.models import Standing as StandingRow
from service.nodes import list_nodes
from service.settings import Settings

_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


def overview_out(session: Session, *, project: Project, settings: Settings) -> Overview:
    names = dict(
        session.exec(select(Kernel.id, Kernel.name).where(Kernel.project_id == project.id).order_by(Kernel.name)).all()
    )
    rows = session.exec(
        select(StandingRow.kernel_id, StandingRow.content)
        .join(Kernel, col(Kernel.id) == col(StandingRow.kernel_id))
        .where(Kernel.project_id == project.id)
    ).all()
    standings = sorted((Standing.model_validate(content) for _, content in rows), key=_order)
    known = {kernel_id for kernel_id, _ in rows}
    return Overview(
        project=project.slug,
        standings=tuple(standings),
        without_results=tuple(name for kernel_id, name in names.items() if kernel_id not in known),
        queues=tuple(queues(session)),
        nodes=tuple(list_nodes(session, settings=settings)),
    )


def _order(standing: Standing) -> tuple[bool, float, str, str]:
    newest_first = (_LONG_AGO - standing.at).total_seconds() if standing.bad else 0.0
    return (not standing.bad, newest_first, standing.kernel, standing.device_class)


def queues(session: Session) -> list[Queue]:
    """Every class that something waits for or runs on."""
    queued = sa.func.sum(sa.case((col(Evaluation.state) == State.QUEUED, 1), else_=0))
    oldest = sa.func.min(sa.case((col(Evaluation.state) == State.QUEUED, col(Evaluation.created_at))))
    query = (
        sa.select(col(Evaluation.device_class), sa.func.count(), queued, oldest)
        .where(col(Evaluation.state).in_((State.QUEUED, State.LEASED)))
        .group_by(col(Evaluation.device_class))
        .order_by(col(Evaluation.device_class))
    )
    return [
        Queue(device_class=DeviceClass(name), queued=waiting, running=count - waiting, oldest_queued_at=since)
        for name, count, waiting, since in session.execute(query)
    ]
