"""Which repositories are ours: only those that GitHub itself says the App is installed on."""

import logging
from typing import Any

from sqlmodel import Session, col, select

from contract.text import one_line
from service.columns import now
from service.github.client import Github, GithubRefusedError
from service.github.tables import GithubRepository
from service.models import Project

log = logging.getLogger(__name__)


class RefusedDeliveryError(Exception):
    """A delivery that nothing is done for, and why."""


def named_repository(payload: dict[str, Any]) -> tuple[int, str, int]:
    """(repository, its full name, installation), as the payload has it. Raises RefusedDeliveryError."""
    repository = payload.get("repository") or {}
    installation = payload.get("installation") or {}
    try:
        return int(repository["id"]), str(repository["full_name"]), int(installation["id"])
    except (KeyError, TypeError, ValueError) as error:
        raise RefusedDeliveryError("it names no repository with an installation of the App") from error


async def check_installation(github: Github, *, full_name: str, claimed: int, owners: tuple[str, ...]) -> None:
    """Ask GitHub whose installation the repository has. Raises RefusedDeliveryError."""
    owner = full_name.partition("/")[0]
    if owners and owner.lower() not in {each.lower() for each in owners}:
        raise RefusedDeliveryError(f"{owner} is none of KERNELGATE_GITHUB_OWNERS")
    try:
        actual = await github.installation_of(full_name)
    except GithubRefusedError as error:
        raise RefusedDeliveryError(f"the App is not installed on {full_name} ({error})") from error
    if actual != claimed:
        raise RefusedDeliveryError(f"{full_name} has installation {actual}, not {claimed}")


def known(session: Session, *, repository_id: int, full_name: str, installation_id: int) -> GithubRepository | None:
    """The row, where everything in it was checked before."""
    row = session.get(GithubRepository, repository_id)
    if row is None or not row.active or (row.full_name, row.installation_id) != (full_name, installation_id):
        return None
    return row


def remember(session: Session, *, repository_id: int, full_name: str, installation_id: int) -> GithubRepository:
    """Keep a repository that was checked; its project is made with it, and survives renames."""
    row = session.get(GithubRepository, repository_id)
    if row is None:
        project = _project_for(session, full_name=full_name, repository_id=repository_id)
        row = GithubRepository(
            id=repository_id, full_name=full_name, installation_id=installation_id, project_id=project.id
        )
    row.full_name, row.installation_id, row.active, row.seen_at = full_name, installation_id, True, now()
    session.add(row)
    session.flush()
    return row


def _project_for(session: Session, *, full_name: str, repository_id: int) -> Project:
    slug = full_name.replace("/", "--").lower()[:80]
    project = session.exec(select(Project).where(Project.slug == slug)).first()
    if project is not None:
        taken = session.exec(select(GithubRepository).where(GithubRepository.project_id == project.id)).first()
        if taken is None:
            return project
        # Another repository had this name before it was renamed or deleted.
        slug = f"{slug}-{repository_id}"
    project = Project(slug=slug, name=one_line(full_name, 200))
    session.add(project)
    session.flush()
    return project


def forget_installation(session: Session, installation_id: int) -> None:
    rows = session.exec(select(GithubRepository).where(GithubRepository.installation_id == installation_id)).all()
    _deactivate(session, [row.id for row in rows])


def forget_repositories(session: Session, repository_ids: list[int]) -> None:
    _deactivate(session, repository_ids)


def _deactivate(session: Session, ids: list[int]) -> None:
    for row in session.exec(select(GithubRepository).where(col(GithubRepository.id).in_(ids))).all():
        row.active = False
        session.add(row)
        log.info("the App was taken off %s", row.full_name)
