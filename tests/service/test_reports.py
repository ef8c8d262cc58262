from typing import Any

import pytest
from sqlmodel import select

from contract.devices import DeviceClass
from contract.outcomes import OUTCOME_OF, Reason, Stage
from contract.report import Check, Environment, Failure, LeftOut, Metric
from contract.samples import Pair, Round
from contract.statics import FunctionStatics
from contract.suite import Suite
from contract.verdicts import Judgement
from service.judging import judge
from service.models import Comparison, Measurement
from tests.service.client import CASES, SUITE, Api, case_result, pairs, report

FIRST, SECOND = CASES
_ONE_OF_EACH = (Reason.COMPILE_ERROR, Reason.CRASHED, Reason.CLOCKS_DISAGREE, Reason.BASE_FAILED)


@pytest.fixture(autouse=True)
def suite(api: Api) -> None:
    api.bring_suite()


@pytest.fixture
def compared(api: Api) -> str:
    """An evaluation of v2 against v1."""
    api.submit("v1")
    return api.submit("v2")["evaluations"][0]


def finish(api: Api, node: Api, evaluation: str, *cases: Any, **changes: Any) -> Any:
    node.finish(node.claim(evaluation), report(*cases, **changes))
    return api.evaluation(evaluation)


def test_a_revision_without_a_base_passes_on_its_checks_alone(api: Api, node: Api) -> None:
    [evaluation] = api.submit("v1")["evaluations"]
    found = finish(api, node, evaluation)
    assert (found["state"], found["outcome"], found["reason"]) == ("finished", "passed", None)
    assert found["summary"] == "right in all checks and measured on 2 of 2 cases; no base to compare with"
    assert found["attempts"][0]["end"] == "reported"
    assert [stage["stage"] for stage in found["stages"]] == ["build"]
    case = found["cases"][0]
    assert case["case"] == FIRST
    assert [metric["name"] for metric in case["metrics"]] == ["time", "throughput"]
    assert case["metrics"][0]["samples"] == []
    assert api.evaluation(evaluation, samples=True)["cases"][0]["metrics"][0]["samples"] == [99.0, 101.0]
    assert found["checks"][0]["family"] == "normal"
    assert api.http.get(f"/evaluations/{evaluation}/log").text == "compiled\n"


def test_a_slower_case_makes_the_outcome_slower_and_is_named(api: Api, node: Api, compared: str) -> None:
    found = finish(api, node, compared, case_result(FIRST, ratio=1.12), case_result(SECOND, ratio=1.0))
    assert found["outcome"] == "slower"
    assert found["summary"].startswith("12")
    assert found["summary"].endswith(f"% slower at {FIRST} (allowed 0.5 %)")
    assert [case["judgement"]["verdict"] for case in found["cases"]] == ["slower", "same"]
    assert found["cases"][0]["judgement"]["ratio"] == pytest.approx(1.12, rel=1e-3)
    assert api.evaluation(compared, samples=True)["cases"][0]["pairs"][0]["rounds"][0]["base"] == [100.0, 100.01]


def test_the_same_and_the_faster_pass_with_the_smallest_slowdown_that_would_have_shown(
    api: Api, node: Api, compared: str
) -> None:
    found = finish(api, node, compared, case_result(FIRST, ratio=0.9), case_result(SECOND, ratio=1.0))
    assert found["outcome"] == "passed"
    assert "10" in found["summary"]
    assert "% faster" in found["summary"]
    assert (
        "nothing is slower than allowed (0.5 %; the smallest slowdown this run would have found: " in found["summary"]
    )


def test_an_allowance_forgives_one_case_and_the_verdict_stays_slower(api: Api, node: Api) -> None:
    allowance = {"revision": "v2", "base": "v1", "case": FIRST, "device_class": "cpu", "reason": "smaller tiles"}
    api.bring_suite(allowances=[allowance])
    api.submit("v1")
    [evaluation] = api.submit("v2")["evaluations"]
    found = finish(api, node, evaluation, case_result(FIRST, ratio=1.61), case_result(SECOND, ratio=1.0))
    assert found["outcome"] == "passed"
    assert found["cases"][0]["judgement"]["verdict"] == "slower"
    assert "allowed there" in found["summary"]


def test_too_little_evidence_is_inconclusive(api: Api, node: Api, compared: str) -> None:
    found = finish(api, node, compared, case_result(FIRST, ratio=1.0, count=2), case_result(SECOND, ratio=1.0))
    assert found["outcome"] == "inconclusive"
    assert found["summary"].startswith(f"inconclusive at {FIRST}: 2 processes a side")


def test_a_case_that_was_not_compared_is_inconclusive_and_never_silently_same(
    api: Api, node: Api, compared: str
) -> None:
    found = finish(api, node, compared, case_result(FIRST), case_result(SECOND, ratio=1.0))
    assert found["outcome"] == "inconclusive"
    assert found["cases"][0]["judgement"]["reason"] == "it was not compared with the base"


def test_a_case_that_either_side_refuses_has_no_verdict(api: Api, node: Api, compared: str) -> None:
    skipped = case_result(FIRST, skipped="m = 64 is not a multiple of 128", metrics=())
    found = finish(api, node, compared, skipped, case_result(SECOND, base_skipped="n = 128 is over 64"))
    assert found["outcome"] == "passed"
    assert [case["judgement"] for case in found["cases"]] == [None, None]
    assert found["cases"][0]["skipped"] == "m = 64 is not a multiple of 128"


def test_the_same_artifact_is_same_without_a_pair(api: Api, node: Api, compared: str) -> None:
    cases = [case_result(case, same_artifact=True) for case in CASES]
    found = finish(api, node, compared, *cases)
    assert found["outcome"] == "passed"
    assert {case["judgement"]["verdict"] for case in found["cases"]} == {"same"}


@pytest.mark.parametrize("reason", _ONE_OF_EACH)
def test_a_failure_gives_the_outcome_of_its_reason(api: Api, node: Api, reason: Reason) -> None:
    [evaluation] = api.submit("v1")["evaluations"]
    failure = Failure(reason=reason, stage=Stage.VERIFY, message="what \x1b[31mhappened\nmore", case=FIRST)
    found = finish(api, node, evaluation, failure=failure)
    assert (found["outcome"], found["reason"]) == (OUTCOME_OF[reason], reason)
    assert found["message"] == "what happened\nmore"
    assert "what happened more" in found["summary"]
    if OUTCOME_OF[reason] == "infrastructure_error":
        assert "through no fault of the kernel" in found["summary"]


def test_a_build_is_built_and_shows_its_machine_code(api: Api, node: Api) -> None:
    statics = (FunctionStatics(function="gemm", architecture="sm_90a", registers=128, spill_store_bytes=0),)
    [evaluation] = api.submit("v1")["evaluations"]
    found = finish(api, node, evaluation, built_only=True, statics=statics, checks=())
    assert found["outcome"] == "built"
    assert found["summary"] == "compiled for sm_90a; not measured, as no card of the class was at hand"
    assert found["statics"][0]["registers"] == 128


def test_another_evaluations_machine_code_does_not_stand_in_for_the_bases(api: Api, node: Api) -> None:
    statics = (FunctionStatics(function="gemm", architecture="x86-64", code_bytes=128),)
    [first] = api.submit("v1")["evaluations"]
    finish(api, node, first, case_result(FIRST), case_result(SECOND), statics=statics)
    [after] = api.submit("v2")["evaluations"]
    found = finish(api, node, after, case_result(FIRST, ratio=1.0), case_result(SECOND, ratio=1.0), statics=statics)
    assert found["base"]["label"] == "v1"
    assert found["base_statics"] == []


def test_what_a_node_left_out_and_the_bases_machine_code_are_kept_as_reported(
    api: Api, node: Api, compared: str
) -> None:
    left_out = (LeftOut(stage=Stage.MEASURE, why="this node has no card"),)
    statics = (FunctionStatics(function="gemm", architecture="sm_89", registers=96),)
    found = finish(api, node, compared, built_only=True, left_out=left_out, base_statics=statics)
    assert found["left_out"] == [{"stage": "measure", "why": "this node has no card"}]
    assert [one["registers"] for one in found["base_statics"]] == [96]
    assert "right in all checks on small cases" in found["summary"]


def test_a_judgement_that_its_samples_do_not_support_is_an_internal_error(api: Api, node: Api, compared: str) -> None:
    lie = Judgement(verdict="same", ratio=1.0, interval=(0.999, 1.001), smallest_detectable=0.006, reason="trust me")
    found = finish(api, node, compared, case_result(FIRST, ratio=1.12, judgement=lie), case_result(SECOND, ratio=1.0))
    assert (found["outcome"], found["reason"]) == ("infrastructure_error", "internal_error")
    assert "the worker says same" in found["message"]
    assert "its samples say slower" in found["message"]


def test_the_judgement_that_its_samples_give_is_taken(api: Api, node: Api, compared: str) -> None:
    cases = [case_result(FIRST, ratio=1.12), case_result(SECOND, ratio=1.0)]
    honest = judge(Suite.model_validate(SUITE), cases, {}, device_class=DeviceClass.CPU)
    cases = [case.model_copy(update={"judgement": honest[case.case].judgement}) for case in cases]
    assert finish(api, node, compared, *cases)["outcome"] == "slower"


def test_a_repeat_pools_the_evidence_of_those_before_it(api: Api, node: Api, compared: str, running) -> None:
    slow = [case_result(FIRST, ratio=1.02, pairs=pairs(1.02, name="p")), case_result(SECOND, ratio=1.0)]
    assert finish(api, node, compared, *slow)["outcome"] == "slower"
    revision = api.evaluation(compared)["revision"]["id"]
    again = api.ok("POST", "/evaluations", json={"revision": revision, "device_class": "cpu"})
    assert (again["repeat"], again["base"]["label"]) == (2, "v1")
    lucky = [case_result(FIRST, ratio=1.0, pairs=pairs(1.0, name="p")), case_result(SECOND, ratio=1.0)]
    found = finish(api, node, again["id"], *lucky)
    assert found["outcome"] != "passed"
    assert found["cases"][0]["judgement"]["ratio"] == pytest.approx(1.01, abs=0.003)
    with running.database.read() as session:
        rows = session.exec(select(Comparison).where(Comparison.evaluation_id == again["id"])).all()
    assert {row.case: (len(row.pairs), row.pooled_pairs) for row in rows} == {FIRST: (8, 8), SECOND: (8, 8)}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"protocol_version": 2}, "protocol_version"),
        ({"device_class": "h200"}, "device_class"),
        ({"cases": (case_result("m=1,n=1,k=1"),)}, "m=1,n=1,k=1 is no case of the suite"),
        ({"cases": (case_result(FIRST), case_result(FIRST))}, "reported twice"),
        (
            {"cases": (case_result(FIRST, metrics=(Metric(name="a", unit="s", value=1),) * 2),)},
            "a metric is reported twice",
        ),
    ],
)
def test_a_report_about_something_else_is_refused_and_changes_nothing(
    api: Api, node: Api, change: dict[str, Any], said: str
) -> None:
    [evaluation] = api.submit("v1")["evaluations"]
    job = node.claim(evaluation)
    response = node.report(job, report(**change))
    assert response.status_code == 422
    assert said in response.json()["detail"]
    assert api.evaluation(evaluation)["state"] == "leased"
    node.finish(job, report())


def test_a_failed_check_counts_though_no_failure_is_named(api: Api, node: Api) -> None:
    [evaluation] = api.submit("v1")["evaluations"]
    wrong = Check(case=FIRST, family="heavy", passed=False, error=float("inf"), reason=Reason.NAN_VALUES)
    found = finish(api, node, evaluation, checks=(wrong,))
    assert (found["outcome"], found["reason"]) == ("incorrect", "nan_values")
    assert found["checks"][0]["error"] is None


@pytest.mark.parametrize(
    ("change", "outcome", "said"),
    [
        ({"checks": ()}, "infrastructure_error", "no verification was reported"),
        ({"cases": (case_result(FIRST),)}, "infrastructure_error", f"nothing was reported of {SECOND}"),
        (
            {"cases": tuple(case_result(case, skipped="too odd", metrics=()) for case in CASES)},
            "incorrect",
            "supports no case",
        ),
    ],
)
def test_silence_never_passes(api: Api, node: Api, change: dict[str, Any], outcome: str, said: str) -> None:
    [evaluation] = api.submit("v1")["evaluations"]
    found = finish(api, node, evaluation, **change)
    assert found["outcome"] == outcome
    assert said in found["message"]


def test_another_unit_than_the_histories_is_an_error_and_is_kept_out_of_it(api: Api, node: Api) -> None:
    [first] = api.submit("v1")["evaluations"]
    finish(api, node, first)
    [second] = api.submit("v1", source="2")["evaluations"]
    milli = case_result(FIRST, metrics=(Metric(name="time", unit="ms", value=0.1),))
    found = finish(api, node, second, milli, case_result(SECOND))
    assert found["reason"] == "internal_error"
    assert "time is in ms, while its history is in us" in found["message"]
    assert found["cases"][0]["metrics"] == []


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
def test_a_spread_below_zero_is_refused_and_changes_nothing(api: Api, node: Api) -> None:
    job = node.claim(api.submit("v1")["evaluations"][0])
    text = report(case_result(FIRST, spread_floor=0.01), case_result(SECOND)).model_dump_json()
    response = node.http.post(
        f"/evaluations/{job.evaluation_id}/report",
        content=text.replace('"spread_floor":0.01', '"spread_floor":-0.01'),
        headers={"X-Kernelgate-Lease": job.lease_token, "Content-Type": "application/json"},
    )
    assert response.status_code == 422
    assert response.json()["detail"].startswith("cases.0.spread_floor")
    assert api.evaluation(job.evaluation_id)["state"] == "leased"


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
@pytest.mark.parametrize(
    ("place", "field"),
    [
        ('"value":5.2', "cases.0.metrics.0.value"),
        ('"low":5.1', "cases.0.metrics.0.low"),
        ('"samples":[5.2]', "cases.0.metrics.0.samples.0"),
        ('"spread_floor":0.01', "cases.0.spread_floor"),
        ('"held_s":2.5', "cases.0.held_s"),
        ('"base":[5.3]', "cases.0.pairs"),
        ('"sm_clock_mhz":1980.0', "environment.clocks"),
    ],
)
def test_a_number_that_no_database_holds_is_named_and_changes_nothing(
    api: Api, node: Api, place: str, field: str, number: str
) -> None:
    job = node.claim(api.submit("v1")["evaluations"][0])
    first = case_result(
        FIRST,
        metrics=(Metric(name="time", unit="us", value=5.2, low=5.1, samples=(5.2,)),),
        spread_floor=0.01,
        held_s=2.5,
        pairs=(Pair(rounds=(Round(base=(5.3,), head=(5.2,)),)),),
    )
    good = report(first, case_result(SECOND), environment=Environment(device="a card", clocks={"sm_clock_mhz": 1980.0}))
    text = good.model_dump_json()
    assert place in text
    wrong = place.partition(":")[0] + ":" + (f"[{number}]" if "[" in place else number)
    response = node.http.post(
        f"/evaluations/{job.evaluation_id}/report",
        content=text.replace(place, wrong),
        headers={"X-Kernelgate-Lease": job.lease_token, "Content-Type": "application/json"},
    )
    assert response.status_code == 422
    assert response.json()["detail"].startswith(f"{field}")
    assert "finite" in response.json()["detail"]
    assert api.evaluation(job.evaluation_id)["state"] == "leased"
    node.finish(job, good)


def test_measurements_of_a_failed_revision_are_not_for_histories(api: Api, node: Api, running) -> None:
    [evaluation] = api.submit("v1")["evaluations"]
    finish(api, node, evaluation, failure=Failure(reason=Reason.CLOCKS_DISAGREE, stage=Stage.MEASURE, message="2 %"))
    with running.database.read() as session:
        assert {row.trusted for row in session.exec(select(Measurement)).all()} == {False}
