"""A profile that is asked for: which evaluation it becomes, what the node is told, and where its metrics are found."""

import pytest

from contract.outcomes import Reason, Stage
from contract.report import Failure, Metric
from tests.service.client import CASES, Api, case_result, report

TENSOR = Metric(name="tensor_pipe_utilisation", unit="%", value=71.25)


@pytest.fixture(autouse=True)
def suite(api: Api) -> None:
    api.bring_suite()


def profiled(case: str):
    plain = case_result(case)
    return plain.model_copy(update={"metrics": (*plain.metrics, TENSOR)})


def test_nobody_is_profiled_unasked(api: Api, node: Api) -> None:
    [evaluation] = api.submit("v1")["evaluations"]
    assert not api.evaluation(evaluation)["profile"]
    assert not node.claim(evaluation).profile


def test_the_node_is_told_and_its_counters_are_metrics_with_history(api: Api, node: Api) -> None:
    [evaluation] = api.submit("v1", profile=True)["evaluations"]
    job = node.claim(evaluation)
    assert job.profile
    node.finish(job, report(*map(profiled, CASES)))
    found = api.evaluation(evaluation)
    assert (found["outcome"], found["profile"]) == ("passed", True)
    assert found["reproduce"].endswith("--profile")
    query = {"device_class": "cpu", "case": CASES[0], "metric": "tensor_pipe_utilisation"}
    series = api.ok("GET", "/projects/local/kernels/sgemm_cpu/history", params=query)
    assert (series["unit"], [point["value"] for point in series["points"]]) == ("%", [71.25])
    [kernel] = api.ok("GET", "/projects/local/kernels")["items"]
    assert "tensor_pipe_utilisation" in kernel["metrics"]


def test_a_profile_that_is_asked_for_later_takes_a_repeat_and_once_only(api: Api) -> None:
    [plain] = api.submit("v1")["evaluations"]
    evaluations = api.submit("v1", profile=True)["evaluations"]
    assert evaluations[1:] == [plain]
    again = api.evaluation(evaluations[0])
    assert (again["repeat"], again["profile"]) == (2, True)
    assert api.submit("v1", profile=True)["evaluations"] == evaluations
    assert api.submit("v1")["evaluations"] == evaluations


def test_an_evaluation_is_repeated_with_a_profile_on_request(api: Api) -> None:
    revision = api.submit("v1")["id"]
    made = api.ok("POST", "/evaluations", json={"revision": revision, "device_class": "cpu", "profile": True})
    assert (made["repeat"], made["profile"]) == (2, True)


def test_a_finding_of_the_sanitizer_is_incorrect_and_draws_nothing(api: Api, node: Api) -> None:
    [evaluation] = api.submit("v1")["evaluations"]
    failure = Failure(
        reason=Reason.SANITIZER_FINDING,
        stage=Stage.SANITIZE,
        message="memcheck: Invalid __global__ write of size 2 bytes\nat gemm_kernel+0x5d0",
        case=CASES[0],
    )
    node.finish(node.claim(evaluation), report(failure=failure))
    found = api.evaluation(evaluation)
    assert (found["outcome"], found["reason"]) == ("incorrect", "sanitizer_finding")
    assert CASES[0] in found["summary"]
    query = {"device_class": "cpu", "case": CASES[0], "metric": "time"}
    series = api.ok("GET", "/projects/local/kernels/sgemm_cpu/history", params=query)
    assert [(point["value"], point["outcome"]) for point in series["points"]] == [(None, "incorrect")]
