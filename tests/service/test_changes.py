"""Steps, outliers and segments of series, and the regressions that steps are signs of."""

import numpy as np
import pytest
from sqlmodel import select

from contract.report import Environment, Metric
from contract.statics import FunctionStatics
from service.models import Revision
from service.reconciler import Reconciler
from service.regressions.tables import SeriesTrack
from service.regressions.tracking import stale_series
from tests.service.client import CASES, SUITE, Api, case_result, report
from tests.service.test_history import evaluate

FIRST, SECOND = CASES


def listed(api: Api, **query):
    return api.ok("GET", "/projects/local/regressions", params=query)["items"]


@pytest.fixture
def suite(api: Api):
    return api.bring_suite(revisions=[])


def bring_series(api: Api, values, *, metric="time", unit="us"):
    bring_many(api, {("h200", "c1"): values}, metric=metric, unit=unit)


def bring_many(api: Api, series, *, metric="time", unit="us"):
    """`series`: values by (class, case), all of the same revisions."""
    lines = [
        f"k,{device_class},r{place},,{case},{metric},{values[place]:.6f},{unit},"
        for place in range(len(next(iter(series.values()))))
        for (device_class, case), values in series.items()
    ]
    csv = "kernel,device_class,label,base,case,metric,value,unit,note\n" + "\n".join(lines) + "\n"
    api.ok("POST", "/projects/local/imports", json={"csv": csv, "provenance": "a table"})


def changes(api: Api, kernel="k", device_class="h200", case="c1", metric="time"):
    query = {"device_class": device_class, "case": case, "metric": metric}
    return api.ok("GET", f"/projects/local/kernels/{kernel}/changes", params=query)


def noisy(count, *, sd=0.002, seed=5):
    return 100 * np.exp(np.random.default_rng(seed).normal(0, sd, count))


def levels(*changes, count=125):
    """Of a series that changes by a factor at each place."""
    values = noisy(count, sd=0.001)
    for place, factor in changes:
        values[place:] *= factor
    return values


def test_a_step_of_a_series_without_verdicts_is_a_regression_and_the_step_back_fixes_it(api: Api):
    values = noisy(80)
    values[30:55] *= 1.05
    values[12] *= 1.4
    bring_series(api, values)
    found = changes(api)
    assert [(each["kind"], each["revision"]["label"]) for each in found["changes"]] == [
        ("outlier", "r12"),
        ("step", "r30"),
        ("step", "r55"),
    ]
    [regression] = listed(api)
    assert found["changes"][1]["regression"] == regression["id"]
    assert (regression["revision"]["label"], regression["cases"][0]["evidence"]) == ("r30", "history")
    assert regression["worst_ratio"] == pytest.approx(1.05, abs=0.004)
    assert (regression["state"], regression["fixed_by"]["label"]) == ("fixed", "r55")
    assert [each["revision"]["label"] for each in listed(api, direction="faster")] == ["r55"]


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
def test_one_cause_over_cases_and_classes_is_one_regression_where_noise_moves_the_steps(api: Api):
    """Of 2.4 spreads: each series has its step a few revisions to one side or the other."""
    names = [(device_class, f"c{case}") for device_class in ("h200", "b300") for case in range(6)]
    series = {name: noisy(120, sd=0.005, seed=seed) for seed, name in enumerate(names)}
    for values in series.values():
        values[60:] *= 1.012
    bring_many(api, series)
    places = {case["revision"]["label"] for each in listed(api) for case in each["cases"]}
    assert len(places) > 1
    [regression] = listed(api)
    assert regression["affected"] >= 10
    assert regression["revision"]["label"] in {"r59", "r60", "r61"}


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("changes_of_level", "fixed_by"),
    [
        ([(30, 1.05), (60, 0.97), (90, 0.982)], {"r30": "r90"}),
        ([(30, 1.03), (60, 1.03), (90, 0.97)], {"r30": None, "r60": "r90"}),
        ([(30, 1.03), (60, 1.03), (90, 0.9426)], {"r30": "r90", "r60": "r90"}),
    ],
)
def test_fixed_is_what_is_back_at_its_level_in_one_step_or_in_several(api: Api, changes_of_level, fixed_by):
    bring_series(api, levels(*changes_of_level))
    found = {each["revision"]["label"]: each["fixed_by"] and each["fixed_by"]["label"] for each in listed(api)}
    assert found == fixed_by


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
@pytest.mark.parametrize("slow", ["c1", "c2", "c3"])
def test_a_regression_is_not_fixed_while_one_of_its_cases_is_still_slow(api: Api, slow):
    back = levels((30, 1.05), (60, 1 / 1.05))
    bring_many(api, {("h200", case): levels((30, 1.05)) if case == slow else back for case in ("c1", "c2", "c3")})
    [regression] = listed(api)
    assert (regression["state"], regression["affected"]) == ("new", 3)
    assert {case["case"] for case in regression["cases"] if case["fixed_by"] is None} == {slow}


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
def test_one_more_case_that_is_still_slow_opens_what_was_fixed(api: Api):
    back = levels((30, 1.05), (60, 1 / 1.05))
    bring_many(api, {("h200", "c1"): back})
    assert [each["state"] for each in listed(api)] == ["fixed"]
    bring_many(api, {("h200", "c2"): levels((30, 1.05))})
    [regression] = listed(api)
    assert (regression["state"], regression["fixed_by"], regression["affected"]) == ("new", None, 2)
    assert regression["reason"] == "c2 on h200 has it, too"
    bring_many(api, {("h200", "c3"): back})
    assert [each["state"] for each in listed(api)] == ["new"]


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
def test_nodes_or_drivers_that_take_turns_see_one_cause(api: Api, node: Api, running, suite):
    """What was measured under the other driver in between says nothing of this one, and may be the cause."""
    for place in range(40):
        value = (100.0 if place < 25 else 106.0) + 0.05 * (place % 3) + 3.0 * (place % 2)
        metrics = (Metric(name="time", unit="us", value=value, better="lower"),)
        cases = [case_result(case, metrics=metrics, base_skipped="as if") for case in CASES]
        [evaluation] = api.submit(f"r{place}", source=str(place))["evaluations"]
        environment = Environment(device="a CPU", driver=str(place % 2))
        node.finish(node.claim(evaluation), report(*cases, environment=environment))
    steps = [each for each in changes(api, "sgemm_cpu", "cpu", FIRST)["changes"] if each["kind"] == "step"]
    assert [each["revision"]["label"] for each in steps] == ["r25", "r26"]
    [regression] = listed(api)
    assert regression["revision"]["label"] == "r25"


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
def test_points_that_come_one_by_one_give_what_they_give_together(api: Api, node: Api, running, suite):
    """Reported one after the other, then one in between: the reconciler works the series out anew."""
    reported = [100.0 + 0.05 * (place % 3) for place in range(12)] + [106.0 + 0.05 * (place % 3) for place in range(8)]
    environment = Environment(device="a CPU", driver="1")
    for place, value in enumerate(reported):
        metrics = (Metric(name="time", unit="us", value=value, better="lower"),)
        cases = [case_result(case, metrics=metrics, base_skipped="as if") for case in CASES]
        [evaluation] = api.submit(f"r{place}", source=str(place))["evaluations"]
        node.finish(node.claim(evaluation), report(*cases, environment=environment))
    found = changes(api, "sgemm_cpu", "cpu", FIRST)
    assert [(each["kind"], each["revision"]["label"]) for each in found["changes"]] == [("step", "r12")]
    [regression] = listed(api)
    assert sorted(case["case"] for case in regression["cases"]) == sorted(CASES)
    with running.database.write() as session:
        late = session.exec(select(Revision).where(Revision.label == "r19")).one()
        early = session.exec(select(Revision).where(Revision.label == "r3")).one()
        late.created_at = early.created_at.replace(microsecond=(early.created_at.microsecond + 1) % 1_000_000)
        session.add(late)
    with running.database.write() as session:
        for track in session.exec(select(SeriesTrack)).all():
            track.stale = True
            session.add(track)
    services = running.services
    Reconciler(database=services.database, dispatcher=services.dispatcher, settings=running.settings).reconcile()
    with running.database.read() as session:
        assert stale_series(session, limit=10) == []
    assert {each["kind"] for each in changes(api, "sgemm_cpu", "cpu", FIRST)["changes"]} >= {"outlier"}


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
def test_a_new_driver_is_a_segment_and_no_regression(api: Api, node: Api, suite):
    for place in range(24):
        driver, value = ("580", 100.0) if place < 12 else ("585", 105.0)
        metrics = (Metric(name="time", unit="us", value=value + 0.05 * (place % 3), better="lower"),)
        cases = [case_result(case, metrics=metrics, base_skipped="as if") for case in CASES]
        [evaluation] = api.submit(f"r{place}", source=str(place))["evaluations"]
        node.finish(node.claim(evaluation), report(*cases, environment=Environment(device="a", driver=driver)))
    found = changes(api, "sgemm_cpu", "cpu", FIRST)
    assert [(each["kind"], each["changed"]) for each in found["changes"]] == [("segment", {"driver": ["580", "585"]})]
    assert listed(api) == []


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
def test_a_step_that_side_by_side_is_none_blames_nobody(api: Api, node: Api, suite):
    for place in range(20):
        value = (100.0 if place < 12 else 108.0) + 0.05 * (place % 3)
        metrics = (Metric(name="time", unit="us", value=value, better="lower"),)
        cases = [case_result(case, ratio=1.0 if place else None, metrics=metrics) for case in CASES]
        [evaluation] = api.submit(f"r{place}", source=str(place))["evaluations"]
        node.finish(node.claim(evaluation), report(*cases))
    [step] = changes(api, "sgemm_cpu", "cpu", FIRST)["changes"]
    assert (step["kind"], step["revision"]["label"], step["regression"]) == ("step", "r12", None)
    assert step["note"] == "side by side on one card r12 is as fast as its base"
    assert listed(api) == []


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
def test_a_faster_baseline_is_not_the_kernels_fault(api: Api, node: Api, suite):
    for place in range(20):
        share = (0.8 if place < 12 else 0.7) + 0.0003 * (place % 3)
        metrics = (
            Metric(name="time", unit="us", value=100.0 + 0.05 * (place % 3), better="lower"),
            Metric(name="throughput_over_baseline", unit="ratio", value=share, better="higher"),
        )
        cases = [case_result(case, metrics=metrics, base_skipped="as if") for case in CASES]
        [evaluation] = api.submit(f"r{place}", source=str(place))["evaluations"]
        node.finish(node.claim(evaluation), report(*cases))
    [step] = changes(api, "sgemm_cpu", "cpu", FIRST, "throughput_over_baseline")["changes"]
    assert step["ratio"] == pytest.approx(0.8 / 0.7, rel=0.01)
    assert step["note"] == "the baseline changed, the kernel's own time didn't"
    assert listed(api) == []


def test_changes_of_an_unknown_series_are_404(api: Api, suite):
    query = {"device_class": "cpu", "case": FIRST, "metric": "nothing"}
    path = f"/projects/local/kernels/{SUITE['kernel']}/changes"
    assert api.problem("GET", path, params=query)["type"] == "unknown-series"


def test_machine_code_begins_a_new_segment_with_another_toolchain(api: Api, node: Api) -> None:
    labels = ["v1", "v2", "v3", "v4"]
    api.bring_suite(revisions=labels)
    built = (
        {"nvcc": "13.0.88", "g++": "13"},
        {"nvcc": "13.0.88", "g++": "14"},
        {"nvcc": "13.1.2"},
        {"triton": "3.7.1"},
    )
    statics = (FunctionStatics(function="gemm", architecture="x86-64", registers=128),)
    for label, toolchain in zip(labels, built, strict=True):
        environment = Environment(device="a card", driver=f"58{label[1]}", toolchain=toolchain)
        evaluate(api, node, label, 1.0, statics=statics, environment=environment)
    found = changes(api, kernel="sgemm_cpu", device_class="cpu", case="", metric="registers")["changes"]
    assert [(each["kind"], each["revision"]["label"], each["changed"]) for each in found] == [
        ("segment", "v3", {"nvcc": ["13.0.88", "13.1.2"]}),
        ("segment", "v4", {"nvcc": ["13.1.2", ""], "triton": ["", "3.7.1"]}),
    ]
