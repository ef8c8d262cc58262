"""Fills an empty database with a long history, to see how fast the pages are. `bench_api.py` measures them.

    python scripts/generate_history.py sqlite:////tmp/large.db
    python scripts/generate_history.py postgresql+psycopg://user@/kernelgate --kernels 10

By default 50 kernels on 4 classes, 10 cases, 500 revisions (1,000,000 values and as many verdicts), and `long` with
5,000 revisions on one class. Speeds drift and step up and down, and some revisions fail. Each step is a change of every
series and, where it is down, a regression of every case. Four nodes a class measured it all, with outages. Every run
makes the same.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlmodel import Session, SQLModel, select

from contract.api import Scope
from contract.outcomes import Outcome, State, Verdict
from contract.suite import Suite
from service.auth import Principal
from service.database import Database, upgrade
from service.models import (
    Attempt,
    CheckResult,
    Comparison,
    Evaluation,
    Kernel,
    Measurement,
    Node,
    Outage,
    Project,
    Revision,
    Series,
)
from service.projects import put_suite
from service.regressions.tables import Regression, RegressionCase, RegressionEvent, SeriesChange
from service.settings import Settings
from service.standings import refresh_all_standings

CLASSES = ("h200", "rtx4090", "rtx4090d", "b300")
SIZES = (256, 512, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288)
LONG = "long"
NODES = 4
TABLES = (
    Revision, Evaluation, Attempt, Comparison, CheckResult, Measurement,
    Regression, RegressionCase, RegressionEvent, SeriesChange,
)  # fmt: skip
_START = datetime(2025, 1, 1, tzinfo=UTC)
_BATCH = 20_000
# What a step does to the speed.
_SLOWER, _FASTER = 0.97, 1.02
_ENVIRONMENT = {"device": "a card", "driver": "580.159", "cuda": "13.0", "clocks": {"sm": 1980}}
_STATICS = [{"function": "gemm", "architecture": "sm_90a", "registers": 128, "spill_store_bytes": 0}]


class Kind(NamedTuple):
    """What rows of a table have in common."""

    table: str
    places: dict[str, int]
    defaults: list[Any]


class Rows:
    """Rows that wait to be written: one statement for many on SQLite, COPY on PostgreSQL. A column that isn't given
    has the model's default."""

    def __init__(self, connection: sa.Connection) -> None:
        self._cursor: Any = connection.connection.cursor()
        self._sqlite = connection.dialect.name == "sqlite"
        self._waiting: dict[str, list[tuple[Any, ...]]] = {}
        self._ids: dict[str, int] = {}

    def kind(self, template: SQLModel) -> Kind:
        table = template.__table__  # type: ignore[attr-defined]
        return Kind(
            table=table.name,
            places={column.name: place for place, column in enumerate(table.columns)},
            defaults=[self._plain(getattr(template, column.name), column) for column in table.columns],
        )

    def add(self, kind: Kind, **changes: Any) -> str:
        """Returns the row's id: as long as the service's, in the order in which they are made."""
        number = self._ids[kind.table] = self._ids.get(kind.table, 0) + 1
        identifier = f"{kind.table[:3]}_{number:026d}"
        row = kind.defaults.copy()
        if "id" in kind.places:
            row[kind.places["id"]] = identifier
        for name, value in changes.items():
            row[kind.places[name]] = value
        waiting = self._waiting.setdefault(kind.table, [])
        waiting.append(tuple(row))
        if len(waiting) >= _BATCH:
            self.flush()
        return identifier

    def moment(self, at: datetime) -> Any:
        return at.replace(tzinfo=None).isoformat(" ", "microseconds") if self._sqlite else at

    def flush(self) -> None:
        """In the order of the tables: rows refer to those of earlier ones."""
        for table in TABLES:
            self._write(SQLModel.metadata.tables[str(table.__tablename__)])

    def _plain(self, value: Any, column: Any) -> Any:
        if isinstance(value, datetime):
            return self.moment(value)
        if isinstance(column.type, sa.JSON):
            return json.dumps(value)
        return value

    def _write(self, table: sa.Table) -> None:
        rows = self._waiting.pop(table.name, [])
        if not rows:
            return
        columns = ", ".join(f'"{column.name}"' for column in table.columns)
        if self._sqlite:
            marks = ", ".join("?" * len(rows[0]))
            self._cursor.executemany(f'INSERT INTO "{table.name}" ({columns}) VALUES ({marks})', rows)  # noqa: S608
            return
        with self._cursor.copy(f'COPY "{table.name}" ({columns}) FROM STDIN') as copy:
            for row in rows:
                copy.write_row(row)


class History:
    """One kernel's revisions: each measured on every class against the one before it, unless it failed."""

    def __init__(
        self, rows: Rows, *, project_id: str, kernel_id: str, series: dict[tuple[str, str, str], str], seed: str
    ) -> None:
        self._rows = rows
        self._series = series
        # As repeatable as it needs to be.
        self._random = random.Random(seed)  # noqa: S311
        # What a row has in common with all others of its kind is made once.
        self._revision = rows.kind(Revision(kernel_id=kernel_id, identity="", label="", mainline=True))
        self._evaluation = rows.kind(
            Evaluation(
                kernel_id=kernel_id,
                revision_id="",
                device_class="",
                protocol_version=1,
                state=State.FINISHED,
                outcome=Outcome.PASSED,
                attempts=1,
                environment=_ENVIRONMENT,
                statics=_STATICS,
            )
        )
        self._comparison = rows.kind(Comparison(
            evaluation_id="", case="", baseline="cuBLAS 13.0", measured="pairs", allowed_slowdown=0.005,
            smallest_detectable=0.006, processes=[[100.0, 100.1]] * 8,
        ))  # fmt: skip
        self._check = rows.kind(
            CheckResult(evaluation_id="", position=0, case="", family="normal", passed=True, of_bound=0.4)
        )
        self._measurement = rows.kind(Measurement(series_id="", revision_id="", evaluation_id="", value=0.0))
        self._attempt = rows.kind(Attempt(evaluation_id="", node="", lease_hash="", end="reported"))
        self._regression = rows.kind(
            Regression(project_id=project_id, direction="slower", revision_id="", worst_ratio=1 / _SLOWER)
        )
        self._affected = rows.kind(RegressionCase(
            regression_id="", kernel_id=kernel_id, device_class="", case="", evidence="side_by_side", metric="time",
            revision_id="", ratio=1 / _SLOWER, low=0.999 / _SLOWER, high=1.001 / _SLOWER, allowed_slowdown=0.005,
        ))  # fmt: skip
        self._event = rows.kind(
            RegressionEvent(regression_id="", number=1, state="new", who="the service", reason="as generated")
        )
        self._change = rows.kind(SeriesChange(series_id="", kind="step", revision_id=""))

    def make(self, *, classes: Sequence[str], cases: Sequence[str], revisions: int) -> int:
        """Returns how many values there are."""
        speed = {(klass, case): self._random.uniform(50, 700) for klass in classes for case in cases}
        base: str | None = None
        values = 0
        for index in range(revisions):
            at = self._rows.moment(_START + timedelta(hours=index))
            revision = self._rows.add(
                self._revision,
                identity=f"{index:064x}:",
                label=f"r{index}",
                summary=f"change {index}: unroll by {1 + index % 8}",
                commit=f"{index:040x}",
                first_parent_index=index,
                created_at=at,
            )
            drawn = self._random.random()
            failed, step = drawn < 0.02, _SLOWER if drawn < 0.04 else _FASTER if drawn < 0.06 else 1.0
            for klass in classes:
                values += self._evaluate(revision, base, klass, at, cases=cases, speed=speed, step=step, failed=failed)
            if step != 1.0 and base and not failed:
                self._step(revision, base, at, step=step, places=list(speed), closed=index < revisions // 2)
            if not failed:
                base = revision
        return values

    def _evaluate(
        self, revision: str, base: str | None, klass: str, at: Any, *, cases: Sequence[str],
        speed: dict[tuple[str, str], float], step: float, failed: bool,
    ) -> int:  # fmt: skip
        verdict = Verdict.SLOWER if step < 1 else Verdict.FASTER if step > 1 else Verdict.SAME
        outcome = Outcome.INCORRECT if failed else Outcome.SLOWER if step < 1 else Outcome.PASSED
        evaluation = self._rows.add(
            self._evaluation,
            revision_id=revision,
            base_id=base,
            base_key=base or "",
            device_class=klass,
            outcome=outcome.value,
            summary=f"{outcome.value}: as generated",
            created_at=at,
            finished_at=at,
        )
        node = f"{klass}-{int(revision[-6:]) % NODES}"
        self._rows.add(self._attempt, evaluation_id=evaluation, node=node, started_at=at, heartbeat_at=at, ended_at=at)
        self._rows.add(self._check, evaluation_id=evaluation, case=cases[0], passed=not failed)
        if failed:
            return 0
        for place, case in enumerate(cases):
            speed[klass, case] = min(900.0, max(20.0, speed[klass, case] * step))
            value = speed[klass, case] * self._random.gauss(1.0, 0.002)
            ratio = self._random.gauss(1.0, 0.001) / step
            self._rows.add(
                self._comparison,
                evaluation_id=evaluation,
                position=place,
                case=case,
                verdict=verdict.value if base else None,
                ratio=ratio if base else None,
                low=ratio * 0.999 if base else None,
                high=ratio * 1.001 if base else None,
            )
            self._measure(revision, evaluation, (klass, case, "throughput"), value)
        self._measure(revision, evaluation, (klass, cases[0], "throughput_over_baseline"), value / 900.0)
        return len(cases)

    def _step(
        self, revision: str, base: str, at: Any, *, step: float, places: Sequence[tuple[str, str]], closed: bool
    ) -> None:
        """Every series changes; a regression says so where it is down."""
        spot = {"revision_id": revision, "after_id": base}
        regression = None
        if step < 1:
            state = "expected" if closed else "new"
            regression = self._rows.add(
                self._regression, state=state, suspects=json.dumps([revision]), created_at=at, changed_at=at, **spot
            )
            self._rows.add(self._event, regression_id=regression, at=at)
            if closed:
                self._rows.add(self._event, regression_id=regression, number=2, state=state, at=at)
        for klass, case in places:
            if regression:
                affected = {"device_class": klass, "case": case, "revision_id": revision, "base_id": base}
                self._rows.add(self._affected, regression_id=regression, **affected)
            series = self._series[klass, case, "throughput"]
            self._rows.add(self._change, series_id=series, ratio=1 / step, regression_id=regression, **spot)

    def _measure(self, revision: str, evaluation: str, series: tuple[str, str, str], value: float) -> None:
        self._rows.add(
            self._measurement,
            series_id=self._series[series],
            revision_id=revision,
            evaluation_id=evaluation,
            value=value,
            low=value * 0.998,
            high=value * 1.002,
        )


def fill(database: Database, *, kernels: int, revisions: int, long: int, cases: int) -> int:
    """Returns how many throughputs there are."""
    wanted: dict[str, tuple[tuple[str, ...], int]] = {LONG: (CLASSES[:1], long)} if long else {}
    wanted |= {f"kernel_{number:02d}": (CLASSES, revisions) for number in range(kernels)}
    sizes = SIZES[:cases]
    case_ids = [f"m={size},n={size},k={size}" for size in sizes]
    kernel_ids = {name: _bring_kernel(database, name, classes=of[0], sizes=sizes) for name, of in wanted.items()}
    series = {name: _bring_series(database, kernel_ids[name], of[0], case_ids) for name, of in wanted.items()}
    values = 0
    with database.write() as session:
        _bring_nodes(session)
        project_id = session.exec(select(Project.id).where(Project.slug == "local")).one()
    with database.write() as session, _without_indices(session):
        rows = Rows(session.connection())
        for name, (classes, count) in wanted.items():
            history = History(rows, project_id=project_id, kernel_id=kernel_ids[name], series=series[name], seed=name)
            values += history.make(classes=classes, cases=case_ids, revisions=count)
        rows.flush()
    with database.engine.connect() as connection:
        connection.execution_options(isolation_level="AUTOCOMMIT").exec_driver_sql("ANALYZE")
    for kernel_id in kernel_ids.values():
        with database.write() as session:
            refresh_all_standings(session, session.get_one(Kernel, kernel_id))
    return values


class _without_indices:  # noqa: N801
    """Rows go in without indices, which are made over all of them at the end."""

    def __init__(self, session: Session) -> None:
        self._connection = session.connection()
        self._indices = [
            index for table in TABLES for index in SQLModel.metadata.tables[str(table.__tablename__)].indexes
        ]

    def __enter__(self) -> None:
        for index in self._indices:
            index.drop(self._connection)

    def __exit__(self, kind: object, *_rest: object) -> None:
        if kind is None:
            for index in self._indices:
                index.create(self._connection)


def _bring_nodes(session: Session) -> None:
    for name, klass in ((f"{klass}-{number}", klass) for klass in CLASSES for number in range(NODES)):
        session.add(Node(name=name, device_class=klass, device=f"a card of {klass}", host=f"rack-{name}"))
        session.flush()
        for hours in range(0, 1000, 50):
            began = _START + timedelta(hours=hours)
            session.add(Outage(node=name, began_at=began, ended_at=began + timedelta(minutes=20), why="Xid 79"))


def _bring_kernel(database: Database, name: str, *, classes: Sequence[str], sizes: Sequence[int]) -> str:
    suite = {
        "kernel": name,
        "operator": "gemm",
        "dtype": "fp16",
        "summary": f"The kernel {name}",
        "device_classes": classes,
        "cases": [{"dims": {"m": size, "n": size, "k": size}, "family": "square"} for size in sizes],
    }
    with database.write() as session:
        admin = Principal(scope=Scope.ADMIN)
        put_suite(session, principal=admin, slug="local", kernel_name=name, suite=Suite.model_validate(suite))
        return session.exec(select(Kernel.id).where(Kernel.name == name)).one()


def _bring_series(
    database: Database, kernel_id: str, classes: Sequence[str], cases: Sequence[str]
) -> dict[tuple[str, str, str], str]:
    def named() -> Iterator[tuple[str, str, str]]:
        for klass in classes:
            yield from ((klass, case, "throughput") for case in cases)
            yield (klass, cases[0], "throughput_over_baseline")

    with database.write() as session:
        made = {
            key: Series(
                kernel_id=kernel_id,
                device_class=key[0],
                case=key[1],
                metric=key[2],
                unit="TFLOPS" if key[2] == "throughput" else "ratio",
                better="higher",
            )
            for key in named()
        }
        session.add_all(made.values())
        return {key: row.id for key, row in made.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("database_url")
    parser.add_argument("--kernels", type=int, default=50)
    parser.add_argument("--revisions", type=int, default=500, help="of each of them")
    parser.add_argument("--long", type=int, default=5000, help="revisions of the one long kernel; 0 for none")
    parser.add_argument("--cases", type=int, default=10, choices=range(1, len(SIZES) + 1))
    given = parser.parse_args()
    settings = Settings(database_url=given.database_url)
    upgrade(settings)
    database = Database(settings)
    began = time.perf_counter()
    values = fill(database, kernels=given.kernels, revisions=given.revisions, long=given.long, cases=given.cases)
    database.close()
    print(f"{values:,} throughputs in {time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
