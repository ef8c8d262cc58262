"""What is done to the database itself, beside the service: schema, and tokens before there is anyone to ask."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from cli.errors import CliError
from cli.local.home import find_home
from contract.api import Scope, TokenIn, TokenOut

if TYPE_CHECKING:
    from service.settings import Settings


def upgrade_schema() -> None:
    """Bring DATABASE_URL's schema up to date."""
    from service.database import upgrade  # noqa: PLC0415

    upgrade(_settings())


def make_token(wanted: TokenIn) -> TokenOut:
    """A token written to DATABASE_URL; raises CliError where its project is unknown."""
    from sqlmodel import select  # noqa: PLC0415

    from service.auth import issue_token  # noqa: PLC0415
    from service.database import Database  # noqa: PLC0415
    from service.models import Project  # noqa: PLC0415

    upgrade_schema()
    database = Database(_settings())
    try:
        with database.write() as session:
            project_id = None
            if wanted.project is not None:
                project = session.exec(select(Project).where(Project.slug == wanted.project)).first()
                if project is None:
                    raise CliError(f"there is no project {wanted.project}")
                project_id = project.id
            token, secret = issue_token(
                session, scope=wanted.scope, project_id=project_id, node=wanted.node, note=wanted.note
            )
            return TokenOut(
                scope=wanted.scope,
                project=wanted.project,
                node=wanted.node,
                note=wanted.note,
                id=token.id,
                created_at=token.created_at,
                secret=secret,
            )
    finally:
        database.close()


def known_token(secret: str, scope: Scope) -> bool:
    """Whether `secret` is a token of DATABASE_URL with that scope."""
    from service.auth import authenticate  # noqa: PLC0415
    from service.database import Database  # noqa: PLC0415

    database = Database(_settings())
    try:
        with database.read() as session:
            principal = authenticate(session, secret)
        return principal is not None and principal.scope is scope
    finally:
        database.close()


def _settings() -> Settings:
    """From the environment; without DATABASE_URL the home's database is meant."""
    from service.settings import Settings  # noqa: PLC0415

    return Settings() if "DATABASE_URL" in os.environ else Settings(database_url=find_home().database_url)
