import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from contract.job import PROTOCOL_VERSION, Job, Progress
from contract.outcomes import OUTCOME_OF, Outcome, Reason, Stage
from contract.report import Report
from tests.worker.jobs import bundle, job, settings, until
from tests.worker.service_stub import Stub
from worker import node
from worker.agent import Agent
from worker.client import ServiceClient
from worker.pipeline import Cancelled

FILES = bundle("gemm_cpu")


@pytest.fixture
def stub() -> Iterator[Stub]:
    with Stub() as running:
        running.offer(job(FILES, heartbeat_s=0.1), FILES)
        yield running


def attempt(stub: Stub, tmp_path: Path, evaluate: Callable[..., Report] | None = None, **more) -> None:
    with ServiceClient(stub.url, "token") as client:
        chosen = {} if evaluate is None else {"evaluate": evaluate}
        Agent(settings(tmp_path, **more), client, **chosen).attempt("ev_1")


def built(wanted: Job) -> Report:
    return Report(protocol_version=PROTOCOL_VERSION, device_class=wanted.device_class, built_only=True)


def waits_for_its_end(started: threading.Event) -> Callable[..., Report]:
    def evaluate(wanted: Job, bundles, *, cancelled, **_) -> Report:
        started.set()
        turn = threading.Event()
        while not cancelled():
            turn.wait(0.01)
        raise Cancelled

    return evaluate


def test_an_evaluation_is_claimed_run_and_reported_once(stub, tmp_path):
    attempt(stub, tmp_path)
    ((name, report),) = stub.reports
    assert name == "ev_1"
    assert report.failure is None
    assert [stage.stage for stage in report.stages] == [
        Stage.FETCH, Stage.BUILD, Stage.INSPECT, Stage.VERIFY, Stage.MEASURE, Stage.REPORT,
    ]  # fmt: skip
    assert len(report.cases) == 2
    assert stub.claims[0]["node"]["name"] == "test-node"
    assert stub.claims[0]["node"]["sandbox"] is True


def test_progress_travels_with_the_heartbeats(stub, tmp_path):
    def evaluate(wanted: Job, bundles, *, on_progress, **_) -> Report:
        on_progress(Progress(stage=Stage.MEASURE, done=1, total=5, detail="m=16"))
        until(lambda: any(p.detail == "m=16" for beat in stub.beats for p in beat.progress))
        return built(wanted)

    attempt(stub, tmp_path, evaluate)
    assert len(stub.reports) == 1


def test_an_evaluation_that_somebody_else_has_is_left_alone(stub, tmp_path):
    stub.jobs.clear()
    attempt(stub, tmp_path, lambda *_, **__: pytest.fail("it must not run"))
    assert stub.reports == []


def test_a_cancelled_evaluation_is_dropped(stub, tmp_path):
    stub.cancel = True
    attempt(stub, tmp_path, waits_for_its_end(threading.Event()))
    assert stub.reports == []


def test_a_lost_lease_ends_what_runs_and_nothing_is_reported(stub, tmp_path):
    started = threading.Event()
    threading.Thread(target=lambda: (started.wait(10), setattr(stub, "lost", True))).start()
    attempt(stub, tmp_path, waits_for_its_end(started))
    assert stub.reports == []


def test_an_error_in_the_worker_is_reported_as_its_own(stub, tmp_path):
    def evaluate(*_, **__) -> Report:
        raise ZeroDivisionError("a bug")

    attempt(stub, tmp_path, evaluate)
    ((_, report),) = stub.reports
    assert report.failure.reason is Reason.INTERNAL_ERROR
    assert OUTCOME_OF[report.failure.reason] is Outcome.INFRASTRUCTURE_ERROR
    assert "ZeroDivisionError: a bug" in report.failure.message


def test_a_bundle_that_can_not_be_fetched_is_an_infrastructure_error(stub, tmp_path):
    stub.bundles.clear()
    attempt(stub, tmp_path)
    assert stub.reports[0][1].failure.reason is Reason.INTERNAL_ERROR


def test_a_report_that_the_service_refuses_is_replaced_by_one_that_says_so(stub, tmp_path):
    stub.refuse_reports = 1
    attempt(stub, tmp_path, lambda wanted, *_, **__: built(wanted))
    ((_, report),) = stub.reports
    assert report.failure.reason is Reason.INTERNAL_ERROR
    assert "refused the report" in report.failure.message


def test_a_service_that_went_away_costs_the_report_and_not_the_worker(stub, tmp_path):
    def evaluate(wanted: Job, bundles, **_) -> Report:
        stub.__exit__()
        return built(wanted)

    attempt(stub, tmp_path, evaluate, report_limit_s=0.3)
    assert stub.reports == []
    stub.__init__()
    stub.__enter__()


def test_a_node_runs_one_evaluation_at_a_time(stub, tmp_path):
    stub.offer(job(FILES, evaluation_id="ev_2"), FILES)
    at_once, most, first_in = [], [], threading.Event()

    def evaluate(wanted: Job, bundles, **_) -> Report:
        at_once.append(wanted.evaluation_id)
        most.append(len(at_once))
        first_in.set()
        threading.Event().wait(0.2)
        at_once.remove(wanted.evaluation_id)
        return built(wanted)

    def second() -> None:
        first_in.wait(10)
        with ServiceClient(stub.url, "token") as client:
            Agent(settings(tmp_path), client, evaluate=evaluate).attempt("ev_2")

    thread = threading.Thread(target=second)
    thread.start()
    attempt(stub, tmp_path, evaluate)
    thread.join(30)
    assert sorted(name for name, _ in stub.reports) == ["ev_1", "ev_2"]
    assert most == [1, 1]


def test_a_gpu_node_without_its_gpu_says_that_it_is_unhealthy(stub, tmp_path, monkeypatch):
    monkeypatch.setattr(node, "probe_gpu", lambda: (None, "NVML did not answer within 20 s"))
    stub.jobs.clear()
    attempt(stub, tmp_path, device_class="h200")
    assert stub.claims[0]["node"]["healthy"] is False
    assert stub.claims[0]["node"]["problem"] == "NVML did not answer within 20 s"


def test_a_card_of_another_class_is_not_taken_for_its_like(stub, tmp_path, monkeypatch):
    gpu = node.Gpu(name="NVIDIA GeForce RTX 4090 D", uuid="GPU-1", driver="580.1")
    monkeypatch.setattr(node, "probe_gpu", lambda: (gpu, None))
    stub.jobs.clear()
    attempt(stub, tmp_path, device_class="rtx4090")
    assert "'NVIDIA GeForce RTX 4090 D', which is not of class rtx4090" in stub.claims[0]["node"]["problem"]


def test_nvml_answers_or_says_why_not():
    gpu, problem = node.probe_gpu()
    assert (gpu is None) == bool(problem)
