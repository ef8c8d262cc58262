"""The engine, transactions, and migrations; SQLite (WAL, writers BEGIN IMMEDIATE) or PostgreSQL."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Annotated, Any, cast

from alembic import command
from alembic.config import Config
from fastapi import Depends, Request
from sqlalchemy import Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.exc import IntegrityError
from sqlalchemy.exc import TimeoutError as WriterBusyError
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
        self._turns = _Turns(wait_s=settings.database_wait_s) if self.engine.dialect.name == "sqlite" else None

    @contextmanager
    def read(self) -> Iterator[Session]:
        with Session(self.engine, expire_on_commit=False) as session:
            yield session

    @contextmanager
    def write(self, *, urgent: bool = False) -> Iterator[Session]:
        """`urgent`: someone outside waits for it, and will not wait long."""
        turn = self._turns.take(urgent=urgent) if self._turns else nullcontext()
        with turn, Session(self._writer, expire_on_commit=False) as session, session.begin():
            yield session

    def close(self) -> None:
        self.engine.dispose()


class _Turns:
    """SQLite has one writer at a time, and its own wait asks again after ever longer pauses. The writers of this
    process take turns instead, urgent ones first."""

    def __init__(self, *, wait_s: float) -> None:
        self._wait_s = wait_s
        self._free = threading.Condition()
        self._taken = False
        self._urgent = 0

    @contextmanager
    def take(self, *, urgent: bool) -> Iterator[None]:
        with self._free:
            self._urgent += urgent
            try:
                came = self._free.wait_for(lambda: not self._taken and (urgent or not self._urgent), self._wait_s)
            finally:
                self._urgent -= urgent
            if not came:
                raise WriterBusyError(f"no turn to write within {self._wait_s:g} s")
            self._taken = True
        try:
            yield
        finally:
            with self._free:
                self._taken = False
                self._free.notify_all()


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
