"""Alembic's entry: runs inside the transaction that service.database.upgrade began."""

from typing import Any, Literal

from alembic import context
from sqlalchemy import String
from sqlmodel import SQLModel
from sqlmodel.sql.sqltypes import AutoString

from service import models  # noqa: F401 - fills SQLModel.metadata
from service.columns import UtcDateTime
from service.github import tables  # noqa: F401 - so do these
from service.regressions import tables as history_tables  # noqa: F401 - and these


def _render(kind: str, value: Any, _context: Any) -> str | Literal[False]:
    """A migration stays true when the models' own types change: it says plain SQLAlchemy."""
    if kind == "type" and isinstance(value, UtcDateTime):
        return "sa.DateTime(timezone=True)"
    if kind == "type" and isinstance(value, AutoString) and isinstance(value.impl_instance, String):
        return f"sa.String(length={value.impl_instance.length})"
    return False


context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=SQLModel.metadata,
    compare_type=True,
    render_item=_render,
)
context.run_migrations()
