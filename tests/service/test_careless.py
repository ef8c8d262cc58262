"""What people send by mistake: each is told clearly, and nothing is lost by it."""

import pytest

from contract.api import Scope
from tests.service.client import CASES, SUITE, Api, case_result, report, submission

HISTORY = f"/projects/local/kernels/{SUITE['kernel']}/history"
SUITE_PATH = f"/projects/local/kernels/{SUITE['kernel']}/suite"


def test_what_was_cancelled_is_measured_when_it_is_submitted_again(api: Api, node: Api) -> None:
    api.bring_suite()
    first = api.submit("v1")
    [gone] = first["evaluations"]
    api.ok("DELETE", f"/evaluations/{gone}")
    assert api.ok("DELETE", f"/evaluations/{gone}")["outcome"] == "cancelled"

    again = api.submit("v1")
    assert again["id"] == first["id"]
    [fresh, kept] = again["evaluations"]
    assert kept == gone
    assert api.submit("v1")["evaluations"] == [fresh, gone]
    job = node.claim(fresh)
    node.finish(job, report(*(case_result(case) for case in CASES)))
    assert api.evaluation(fresh)["outcome"] == "passed"
    assert api.submit("v1")["evaluations"] == [fresh, gone]


def test_what_is_being_cancelled_is_measured_when_it_is_submitted_again(api: Api, node: Api) -> None:
    api.bring_suite()
    [going] = api.submit("v1")["evaluations"]
    node.claim(going)
    api.ok("DELETE", f"/evaluations/{going}")
    assert len(api.submit("v1")["evaluations"]) == 2


def test_a_request_that_is_sent_twice_asks_nothing_anew_and_another_one_needs_another_key(api: Api) -> None:
    api.bring_suite()
    key = {"Idempotency-Key": "one"}
    [evaluation] = api.ok("POST", "/revisions", json=submission(), headers=key)["evaluations"]
    api.ok("DELETE", f"/evaluations/{evaluation}")
    assert api.ok("POST", "/revisions", json=submission(), headers=key)["evaluations"] == [evaluation]
    problem = api.problem("POST", "/revisions", json=submission(build_only=True), headers=key)
    assert problem["type"] == "idempotency-key-reused"


@pytest.mark.parametrize("path", ["/evaluations", "/projects", "/nodes", "/regressions"])
def test_a_mistyped_parameter_is_refused_and_those_that_there_are_named(api: Api, path: str) -> None:
    problem = api.problem("GET", path, params={"limti": 1})
    assert (problem["status"], problem["field"]) == (422, "limti")
    assert "'limti' is no parameter of this (it has after, " in problem["detail"]
    assert "limit" in problem["detail"]


def test_a_path_or_method_that_is_not_there_is_named(api: Api) -> None:
    assert "'/api/v1/evalautions'" in api.problem("GET", "/evalautions")["detail"]
    problem = api.problem("PUT", "/evaluations")
    assert (problem["status"], "PUT is no method of '/api/v1/evaluations'" in problem["detail"]) == (405, True)


@pytest.mark.parametrize("number", [-1, 1 << 31, 10**30, "x"])
def test_a_stream_is_not_resumed_after_what_is_no_event(api: Api, number: object) -> None:
    api.bring_suite()
    [evaluation] = api.submit("v1")["evaluations"]
    problem = api.problem("GET", f"/evaluations/{evaluation}/events", headers={"Last-Event-ID": str(number)})
    assert (problem["status"], problem["field"]) == (422, "last-event-id")


@pytest.mark.parametrize("metric", ["", "\x00", "Time", "x" * 64, "a/b"])
def test_a_metric_that_can_not_be_one_is_refused(api: Api, metric: str) -> None:
    api.bring_suite()
    asked = {"device_class": "cpu", "case": CASES[0], "metric": metric}
    for path in (HISTORY, f"{HISTORY}.csv"):
        assert api.problem("GET", path, params=asked)["field"] == "metric"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"revisions": ["v1", "v2", "v1"]}, "revisions: v1 is listed twice"),
        ({"cases": [{"dims": {"m": 1 << 31, "n": 1, "k": 1}}]}, "cases.0.dims.m: Input should be less than 2147483648"),
        ({"kernel": "another"}, "kernel: the suite is another's"),
    ],
)
def test_a_suite_with_a_slip_is_refused_and_the_one_before_stays(api: Api, changes: object, said: str) -> None:
    before = api.bring_suite()
    problem = api.problem("PUT", SUITE_PATH, json={**SUITE, **changes})
    assert (problem["status"], problem["detail"].removesuffix(" (and 1 more)")) == (422, said)
    assert api.ok("GET", SUITE_PATH)["digest"] == before["digest"]


def test_a_workers_token_is_for_a_node_whose_name_can_be_one(api: Api) -> None:
    assert api.problem("POST", "/tokens", json={"scope": Scope.WORKER, "node": "rack 4/gpu"})["field"] == "node"


def test_a_base_of_another_project_is_none_here(api: Api) -> None:
    api.bring_suite()
    api.ok("POST", "/projects", json={"slug": "other"})
    api.ok("PUT", f"/projects/other/kernels/{SUITE['kernel']}/suite", json=SUITE)
    elsewhere = api.ok("POST", "/revisions", json=submission("v1", project="other"))
    for name in (elsewhere["id"], elsewhere["label"]):
        problem = api.problem("POST", "/revisions", json=submission("v2", base=name))
        assert (problem["type"], problem["field"]) == ("unknown-base", "base")


def test_a_suite_that_drops_a_case_keeps_its_history(api: Api, node: Api) -> None:
    api.bring_suite()
    [evaluation] = api.submit("v1")["evaluations"]
    node.finish(node.claim(evaluation), report(*(case_result(case) for case in CASES)))
    api.bring_suite(cases=SUITE["cases"][:1])
    asked = {"device_class": "cpu", "case": CASES[1], "metric": "time"}
    assert [each["label"] for each in api.ok("GET", HISTORY, params=asked)["points"]] == ["v1"]
