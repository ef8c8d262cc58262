from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy.exc import IntegrityError
from sqlmodel import Session, SQLModel, select

from service.database import Database, WriterBusyError, upgrade
from service.ids import new_id
from service.models import Kernel, Project
from service.settings import Settings
from tests.service.conftest import wait_for


def test_the_migration_makes_exactly_the_tables_of_the_models(database: Database) -> None:
    with database.engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, SQLModel.metadata) == []


def test_upgrading_twice_changes_nothing_and_leaves_one_local_project(settings: Settings, database: Database) -> None:
    upgrade(settings)
    upgrade(settings)
    with database.read() as session:
        assert [project.slug for project in session.exec(select(Project)).all()] == ["local"]


def test_a_transaction_that_raises_leaves_nothing_behind(database: Database) -> None:
    def fail(session: Session) -> None:
        session.add(Project(slug="half"))
        session.flush()
        raise RuntimeError

    with pytest.raises(RuntimeError), database.write() as session:
        fail(session)
    with database.read() as session:
        assert session.exec(select(Project).where(Project.slug == "half")).first() is None


def test_a_time_comes_back_aware_and_in_utc(database: Database) -> None:
    moment = datetime(2026, 12, 1, 1, 2, 3, 456789, tzinfo=UTC)
    with database.write() as session:
        session.add(Project(slug="timed", created_at=moment))
    with database.read() as session:
        assert session.exec(select(Project).where(Project.slug == "timed")).one().created_at == moment


def test_an_urgent_writer_goes_before_those_that_wait_longer_on_sqlite(tmp_path: Path) -> None:
    database = Database(Settings(database_url=f"sqlite:///{tmp_path / 'turns.db'}"))
    wrote: list[str] = []

    def write(name: str, *, urgent: bool) -> None:
        with database.write(urgent=urgent):
            wrote.append(name)

    turns = database._turns
    assert turns is not None
    with ThreadPoolExecutor(4) as pool:
        with database.write():
            slow = [pool.submit(write, "patient", urgent=False) for _ in range(2)]
            wait_for(lambda: len(turns._free._waiters) == 2)
            urgent = pool.submit(write, "urgent", urgent=True)
            wait_for(lambda: turns._urgent == 1)
        for each in (*slow, urgent):
            each.result()
    assert wrote == ["urgent", "patient", "patient"]
    database.close()


def test_a_writer_that_gets_no_turn_in_time_fails_and_holds_nobody_up(tmp_path: Path) -> None:
    database = Database(Settings(database_url=f"sqlite:///{tmp_path / 'turns.db'}", database_wait_s=0.05))
    with database.write(), pytest.raises(WriterBusyError, match="no turn to write within"):
        database.write(urgent=True).__enter__()
    with database.write():
        pass
    database.close()


def test_foreign_keys_hold(database: Database) -> None:
    with pytest.raises(IntegrityError), database.write() as session:
        session.add(Kernel(project_id="prj_nowhere", name="lost"))


def test_ids_sort_by_the_time_at_which_they_were_made() -> None:
    ids = [new_id("ev") for _ in range(200)]
    assert len(set(ids)) == 200
    assert [name[:11] for name in ids] == sorted(name[:11] for name in ids)
    assert all(name.startswith("ev_") and len(name) == 29 for name in ids)
