"""An idle node measures what ships against itself, within a budget, and gives way to evaluations."""

import shutil
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pydantic import ValidationError

from contract.devices import DeviceClass
from contract.spreads import Spread
from tests.worker.jobs import FIXTURES, settings
from worker import calibrating, spreads, turn
from worker.calibrating import Calibration, learn

SUITE = """kernel = "gemm"
operator = "gemm"
dtype = "fp32"
device_classes = ["cpu"]
revisions = ["v1"]
policy.allowed_slowdown = 0.05
[[cases]]
dims = { m = 64, n = 64, k = 64 }
allowed_slowdown = 0.1
[[cases]]
dims = { m = 96, n = 96, k = 96 }
"""
FIRST, SECOND = "m=64,n=64,k=64", "m=96,n=96,k=96"


@pytest.fixture
def kernels(tmp_path: Path) -> Path:
    folder = tmp_path / "kernels" / "gemm"
    folder.mkdir(parents=True)
    (folder / "suite.toml").write_text(SUITE)
    shutil.copytree(FIXTURES / "gemm_cpu", folder / "v1")
    return folder.parent


def node(tmp_path: Path, kernels: Path | None, **more):
    real = {"judge": ("-m", "worker.judge"), "calibration_s_a_day": 100.0, "shipped_kernels": kernels}
    return settings(tmp_path, **(real | more))


def a_spread(case: str, **changes) -> Spread:
    fields = {"time_us": 9.0, "bytes_a_call": 1e4, "capped": False, "sd": 0.001, "pairs": 8}
    at = {"measured_at": datetime.now(UTC)}
    return Spread(**({"kernel": "gemm", "case": case} | fields | at | changes))


def test_a_kernel_that_ships_is_measured_against_itself_with_all_its_processes(tmp_path, kernels):
    run = node(tmp_path, kernels)
    found = learn(run, over=threading.Event())
    assert (found.kernel, found.case, found.pairs, found.capped) == ("gemm", FIRST, 8, False)
    assert found.sd > 0.0
    assert found.time_us > 0.1
    assert found.bytes_a_call == 3 * 64 * 64 * 4
    kept = spreads.stored(run)
    assert kept.spreads == (found,)
    assert kept.day == datetime.now(UTC).date()
    assert kept.spent_s > 0.1


def test_the_case_that_was_measured_longest_ago_is_due(tmp_path, kernels):
    run = node(tmp_path, kernels)
    spreads.store(run, spreads.Learnt(spreads=(a_spread(FIRST),)))
    assert calibrating._due(run, spreads.stored(run)).case.id == SECOND
    older = datetime.now(UTC) - timedelta(days=1)
    spreads.store(run, spreads.Learnt(spreads=(a_spread(FIRST, measured_at=older), a_spread(SECOND))))
    assert calibrating._due(run, spreads.stored(run)).case.id == FIRST


def test_a_case_that_can_not_be_measured_keeps_no_other_from_its_turn(tmp_path, kernels):
    manifest = kernels / "gemm" / "v1" / "kernel.toml"
    run = node(tmp_path, kernels)
    source = next(path for path in manifest.parent.iterdir() if path.suffix in {".cpp", ".cc"})
    was = source.read_text()
    source.write_text("#error\n")
    assert learn(run, over=threading.Event()) is None
    assert calibrating._due(run, spreads.stored(run)).case.id == SECOND
    source.write_text(was)
    assert learn(run, over=threading.Event()).case == SECOND
    assert calibrating._due(run, spreads.stored(run)).case.id == FIRST


@pytest.mark.parametrize(
    "lie",
    [
        {"sd": "Infinity"},
        {"sd": 1e200},
        {"time_us": "Infinity"},
        {"bytes_a_call": "Infinity"},
        {"pairs": 10**400},
        {"measured_at": "2026-12-01T00:00:00"},
    ],
)
def test_a_spread_that_nothing_can_be_told_from_is_refused(lie):
    honest = a_spread(FIRST).model_dump(mode="json")
    assert Spread.model_validate(honest) is not None
    with pytest.raises(ValidationError):
        Spread.model_validate(honest | lie)


def test_nothing_is_measured_once_the_budget_of_the_day_is_spent(tmp_path, kernels):
    run = node(tmp_path, kernels)
    today = datetime.now(UTC).date()
    spreads.store(run, spreads.Learnt(day=today, spent_s=100.0))
    assert learn(run, over=threading.Event()) is None
    assert spreads.stored(run).spent_s == 100.0
    assert spreads.stored(run).spent_on(today + timedelta(days=1)) == 0.0


def test_learning_gives_way_to_an_evaluation_and_counts_what_it_took(tmp_path, kernels):
    run = node(tmp_path, kernels)
    entered = threading.Event()

    def evaluation() -> None:
        with turn.taken(run):
            entered.set()

    with turn.taken_if_idle(run, since_s=0.0) as idle:
        assert idle
        waiting = threading.Thread(target=evaluation)
        waiting.start()
        while not turn.wanted(run):
            waiting.join(0.01)
        assert learn(run, over=threading.Event()) is None
        assert not entered.is_set()
    waiting.join(10)
    assert entered.is_set()
    assert not turn.wanted(run)
    assert spreads.stored(run).spreads == ()


def test_a_node_that_has_just_worked_is_not_idle(tmp_path):
    run = node(tmp_path, None)
    with turn.taken(run):
        assert turn.busy(run)
        with turn.taken_if_idle(run, since_s=0.0) as idle:
            assert not idle
    with turn.taken_if_idle(run, since_s=60.0) as idle:
        assert not idle
    with turn.taken_if_idle(run, since_s=0.0) as idle:
        assert idle
        assert turn.busy(run)


def test_a_cpu_learns_nothing_unless_it_is_told_to(tmp_path):
    assert settings(tmp_path).calibration_s_a_day == 0.0
    assert settings(tmp_path, device_class=DeviceClass.H200).calibration_s_a_day > 0.0
    idle = Calibration(settings(tmp_path))
    idle.start()
    assert not idle._thread.is_alive()


def test_an_idle_node_learns_by_itself(tmp_path, kernels):
    run = node(tmp_path, kernels)
    calibration = Calibration(run, idle_s=0.0, every_s=0.01)
    calibration.start()
    try:
        while not spreads.stored(run).spreads:
            assert calibration._thread.is_alive()
            calibration._over.wait(0.05)
    finally:
        calibration.stop()
        calibration._thread.join(60)
    assert spreads.stored(run).spreads[0].case == FIRST


def test_spreads_that_can_not_be_read_are_learnt_anew(tmp_path):
    run = node(tmp_path, None)
    run.cache_dir.mkdir()
    (run.cache_dir / "test-node.spreads.json").write_text("{")
    assert spreads.stored(run) == spreads.Learnt()


def test_of_each_case_the_newest_three_are_kept():
    days = [datetime(2026, 1, day, tzinfo=UTC) for day in (1, 2, 3, 4)]
    learnt = spreads.Learnt()
    for day in days:
        learnt = learnt.after(day=day.date(), spent_s=1.0, found=[a_spread(FIRST, measured_at=day)])
    assert [each.measured_at for each in learnt.spreads] == days[1:]
    assert learnt.spent_s == 1.0
