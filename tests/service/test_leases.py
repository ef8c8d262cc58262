from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlmodel import select

from contract import bundle
from contract.api import Scope
from contract.outcomes import Reason, Stage
from contract.report import Failure
from service.models import Attempt
from tests.service.client import CASES, Api, claim, node_info, report


@pytest.fixture
def evaluation(api: Api) -> str:
    api.bring_suite()
    return api.submit("v1")["evaluations"][0]


def test_a_claim_brings_all_that_the_job_needs(api: Api, node: Api, evaluation: str) -> None:
    job = node.claim(evaluation)
    assert (job.project, job.kernel, job.device_class, job.repeat) == ("local", "sgemm_cpu", "cpu", 1)
    assert job.revision.label == "v1"
    assert job.base is None
    assert [case.id for case in job.suite.cases] == list(CASES)
    assert job.suite.revisions == ("v1_naive", "v2_blocked", "v3_packed")
    archive = node.http.get(f"/bundles/{job.revision.digest}")
    assert archive.headers["content-type"] == "application/gzip"
    assert bundle.digest(bundle.unpack(archive.content)) == job.revision.digest
    found = api.evaluation(evaluation)
    assert found["state"] == "leased"
    assert [attempt["node"] for attempt in found["attempts"]] == ["node-1"]


@pytest.mark.parametrize("names", [[f"node-{place}" for place in range(8)], ["node-1"] * 8])
def test_of_many_claims_at_once_one_wins(running, evaluation: str, names: list[str]) -> None:
    nodes = [(name, running.api(running.token(Scope.WORKER, node=name))) for name in names]

    def attempt(node: tuple[str, Api]) -> int:
        name, api = node
        return api.http.post(f"/evaluations/{evaluation}/claim", json=claim(name=name)).status_code

    with ThreadPoolExecutor(8) as pool:
        assert sorted(pool.map(attempt, nodes)) == [200] + [409] * 7


def test_what_was_claimed_finished_or_is_of_another_class_is_not_claimable(
    api: Api, node: Api, running, evaluation: str
) -> None:
    path = f"/evaluations/{evaluation}/claim"
    gpu = running.api(running.token(Scope.WORKER, node="gpu"))
    wrong = gpu.problem("POST", path, json=claim(name="gpu", device_class="h200"))
    assert (wrong["status"], wrong["type"]) == (409, "not-claimable")
    assert "is for cpu" in wrong["detail"]
    job = node.claim(evaluation)
    assert node.problem("POST", path, json=claim())["type"] == "not-claimable"
    node.finish(job, report())
    assert node.problem("POST", path, json=claim())["type"] == "not-claimable"
    assert node.problem("POST", "/evaluations/ev_none/claim", json=claim())["type"] == "unknown-evaluation"


def test_a_build_is_claimed_by_a_node_that_builds_for_the_class(api: Api, node: Api) -> None:
    api.bring_suite(device_classes=["h200"])
    [evaluation] = api.submit("v1", build_only=True)["evaluations"]
    assert node.problem("POST", f"/evaluations/{evaluation}/claim", json=claim())["type"] == "not-claimable"
    assert node.claim(evaluation, build_only_classes=["h200"]).build_only


def test_an_unhealthy_node_gets_nothing_and_is_shown_as_such(api: Api, node: Api, evaluation: str) -> None:
    body = claim(healthy=False, problem="Xid 79")
    problem = node.problem("POST", f"/evaluations/{evaluation}/claim", json=body)
    assert problem["type"] == "not-claimable"
    assert [(each["state"], each["problem"]) for each in api.ok("GET", "/nodes")["items"]] == [("unhealthy", "Xid 79")]
    assert api.evaluation(evaluation)["state"] == "queued"


def test_a_nodes_token_speaks_for_no_other_node(node: Api, evaluation: str) -> None:
    body = claim(name="node-2")
    assert node.problem("POST", f"/evaluations/{evaluation}/claim", json=body)["field"] == "node.name"


def test_heartbeats_carry_progress_out_and_cancellation_back(api: Api, node: Api, evaluation: str) -> None:
    job = node.claim(evaluation)
    reply = node.beat(job, {"stage": "measure", "done": 1, "total": 2, "detail": CASES[0]})
    assert reply["cancel"] is False
    found = api.evaluation(evaluation)
    assert (found["stage"], found["progress"]) == ("measure", f"measure 1/2 {CASES[0]}")
    response = api.http.delete(f"/evaluations/{evaluation}")
    assert (response.status_code, response.json()["state"]) == (202, "leased")
    assert node.beat(job)["cancel"] is True
    found = api.evaluation(evaluation)
    assert (found["state"], found["outcome"], found["reason"]) == ("cancelled", "cancelled", "by_request")
    assert found["attempts"][0]["end"] == "cancelled"
    assert node.report(job, report()).json()["type"] == "urn:kernelgate:problem:lease-lost"


def test_a_node_that_reports_its_own_stop_ends_the_evaluation_as_cancelled(
    api: Api, node: Api, evaluation: str
) -> None:
    failure = Failure(reason=Reason.SUPERSEDED, stage=Stage.MEASURE, message="")
    node.finish(node.claim(evaluation), report(failure=failure))
    found = api.evaluation(evaluation)
    assert (found["state"], found["outcome"], found["reason"]) == ("cancelled", "cancelled", "superseded")
    assert found["cases"] == []


def test_a_result_that_comes_after_a_cancellation_is_cancelled_too(api: Api, node: Api, evaluation: str) -> None:
    job = node.claim(evaluation)
    api.ok("DELETE", f"/evaluations/{evaluation}")
    node.finish(job, report())
    assert api.evaluation(evaluation)["outcome"] == "cancelled"


def test_a_queued_evaluation_is_cancelled_at_once_and_only_once(api: Api, node: Api, evaluation: str) -> None:
    first = api.ok("DELETE", f"/evaluations/{evaluation}")
    assert (first["state"], first["outcome"]) == ("cancelled", "cancelled")
    assert api.ok("DELETE", f"/evaluations/{evaluation}") == first
    assert node.problem("POST", f"/evaluations/{evaluation}/claim", json=claim())["type"] == "not-claimable"


def test_a_finished_evaluation_is_not_cancelled(api: Api, node: Api, evaluation: str) -> None:
    node.finish(node.claim(evaluation), report())
    assert api.problem("DELETE", f"/evaluations/{evaluation}")["type"] == "already-finished"


def test_a_second_report_with_the_same_lease_is_refused(api: Api, node: Api, evaluation: str) -> None:
    job = node.claim(evaluation)
    node.finish(job, report())
    before = api.evaluation(evaluation)
    failure = Failure(reason=Reason.CRASHED, stage=Stage.VERIFY, message="boom")
    response = node.report(job, report(failure=failure))
    assert response.status_code == 409
    assert response.json()["type"] == "urn:kernelgate:problem:lease-lost"
    assert api.evaluation(evaluation) == before


def test_a_foreign_or_missing_lease_is_refused(api: Api, node: Api, running, evaluation: str) -> None:
    job = node.claim(evaluation)
    foreign = job.model_copy(update={"lease_token": "kl_something_else"})
    assert node.report(foreign, report()).status_code == 409
    path = f"/evaluations/{evaluation}/report"
    assert node.problem("POST", path, content=report().model_dump_json())["field"] == "X-Kernelgate-Lease"
    other = running.api(running.token(Scope.WORKER, node="node-2"))
    assert other.report(job, report()).status_code == 403
    assert api.evaluation(evaluation)["state"] == "leased"
    node.finish(job, report())


def test_no_lease_is_kept_in_clear(node: Api, running, evaluation: str) -> None:
    job = node.claim(evaluation)
    with running.database.read() as session:
        assert job.lease_token not in repr(session.exec(select(Attempt)).one())


def test_only_nodes_reach_bundles_and_an_unknown_one_is_a_problem(api: Api, node: Api) -> None:
    assert api.problem("GET", f"/bundles/{'0' * 64}")["type"] == "forbidden"
    assert node.problem("GET", f"/bundles/{'0' * 64}")["type"] == "unknown-bundle"
    assert node.problem("GET", "/bundles/..%2Fsecret")["status"] in {404, 422}


def test_a_node_is_idle_busy_and_offline(api: Api, node: Api, make_running, evaluation: str) -> None:
    node.ok("PUT", "/nodes/node-1", json=node_info())
    assert [(each["name"], each["state"]) for each in api.ok("GET", "/nodes")["items"]] == [("node-1", "idle")]
    node.claim(evaluation)
    [busy] = api.ok("GET", "/nodes")["items"]
    assert (busy["state"], busy["evaluation"]) == ("busy", evaluation)
    impatient = make_running(node_offline_after_s=1e-6)
    [offline] = impatient.api(impatient.token(Scope.READ)).ok("GET", "/nodes")["items"]
    assert offline["state"] == "offline"
    assert node.problem("PUT", "/nodes/node-2", json=node_info())["field"] == "name"
