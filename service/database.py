"""The engine, transactions, and migrations; SQLite (WAL, writers BEGIN IMMEDIATE) or PostgreSQL."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, cast

from alembic import command
from alembic.config import Config
from fastapi import Depends, Request
from sqlalchemy import Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.exc import IntegrityError
from sqlmodel import Session, SQLModel, select

from contract.names import LOCAL_PROJECT
from service.models import Project
from service.settings import Settings

_MIGRATIONS = Path(__file__).parent / "migrations"
_MAPPED_BYTES = 1 << 31
_MIGRATION_LOCK = 7_215_016_552  # an arbitrary key, the same in every replica


class Database:
    """One engine. `with database.write() as session:` is one transaction, committed where the block ends and rolled
    back where it raises; `read()` never writes. A request opens one of them once, and publishes after it."""

    def __init__(self, settings: Settings) -> None:
        self.engine = create_database_engine(settings)
        self._writer = self.engine.execution_options(kernelgate_begin="IMMEDIATE")

    @contextmanager
    def read(self) -> Iterator[Session]:
        with Session(self.engine, expire_on_commit=False) as session:
            yield session

    @contextmanager
    def write(self) -> Iterator[Session]:
        with Session(self._writer, expire_on_commit=False) as session, session.begin():
            yield session

    def close(self) -> None:
        self.engine.dispose()


def insert_if_missing(session: Session, row: SQLModel) -> bool:
    """Insert `row`; False, and nothing done, where another transaction has just made one with its key."""
    try:
        with session.begin_nested():
            session.add(row)
    except IntegrityError:
        return False
    return True


def database_of(request: Request) -> Database:
    return cast("Database", request.app.state.database)


DatabaseDep = Annotated[Database, Depends(database_of)]


def create_database_engine(settings: Settings) -> Engine:
    url = make_url(settings.database_url)
    options: dict[str, Any] = {"pool_size": settings.database_pool, "max_overflow": 4}
    if url.get_backend_name() != "sqlite":
        return create_engine(url, pool_pre_ping=True, pool_timeout=settings.database_wait_s, **options)
    if url.database:
        Path(url.database).parent.mkdir(parents=True, exist_ok=True)
    engine = create_engine(
        url,
        connect_args={"timeout": settings.database_wait_s, "check_same_thread": False},
        pool_timeout=settings.database_wait_s,
        **options,
    )
    event.listen(engine, "connect", _configure_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _configure_sqlite(connection: Any, _record: Any) -> None:
    # sqlite3 would begin transactions by itself, deferred, and a deferred writer can't wait for another one.
    connection.isolation_level = None
    cursor = connection.cursor()
    # The system's page cache serves every connection; SQLite's own would hold 2 MB for each.
    for pragma in ("journal_mode=WAL", "synchronous=NORMAL", "foreign_keys=ON", f"mmap_size={_MAPPED_BYTES}"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _begin_sqlite(connection: Connection) -> None:
    kind = connection.get_execution_options().get("kernelgate_begin", "DEFERRED")
    connection.exec_driver_sql(f"BEGIN {kind}")


def upgrade(settings: Settings) -> None:
    """Bring the database to the newest schema, with the project `local` in it. Several replicas may do so at once."""
    engine = create_database_engine(settings)
    try:
        with engine.execution_options(kernelgate_begin="IMMEDIATE").begin() as connection:
            if connection.dialect.name == "postgresql":
                connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _MIGRATION_LOCK})
            command.upgrade(alembic_config(connection), "head")
            with Session(connection) as session:
                if session.exec(select(Project).where(Project.slug == LOCAL_PROJECT)).first() is None:
                    session.add(Project(slug=LOCAL_PROJECT, name="this machine"))
                    session.flush()
    finally:
        engine.dispose()


def alembic_config(connection: Connection) -> Config:
    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS))
    config.attributes["connection"] = connection
    return config
