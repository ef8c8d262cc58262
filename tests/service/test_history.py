import pytest
from sqlalchemy import event

from contract.report import Failure
from tests.service.client import CASES, case_result, report
from tests.service.test_imports import HEADER, bring


def history(api, *, case=CASES[0], metric="time", **query):
    asked = {"device_class": "cpu", "case": case, "metric": metric, **query}
    return api.ok("GET", "/projects/local/kernels/sgemm_cpu/history", params=asked)


def evaluate(api, node, label, ratio=None, **changes):
    """Submit a revision and report it measured, against its base where it has one."""
    evaluation = api.submit(label)["evaluations"][0]
    job = node.claim(evaluation)
    cases = tuple(case_result(case, ratio=ratio if job.base else None) for case in CASES)
    node.finish(job, report(*cases, **changes))
    return evaluation


@pytest.fixture
def three(api, node):
    """v1, then v2 that is 20 % faster, then v3 that is 50 % slower than it."""
    api.bring_suite()
    return [evaluate(api, node, label, ratio) for label, ratio in (("v1", None), ("v2", 0.8), ("v3", 1.5))]


def test_points_stand_in_the_order_of_the_mainline_with_verdicts_against_their_bases(api, three):
    series = history(api)
    assert (series["unit"], series["better"], series["baseline"]) == ("us", "lower", "torch 2.13.0, MKL")
    points = series["points"]
    assert [point["label"] for point in points] == ["v1", "v2", "v3"]
    assert [point["base"] for point in points] == [None, "v1", "v2"]
    assert [point["verdict"] for point in points] == [None, "faster", "slower"]
    assert [point["outcome"] for point in points] == ["passed", "passed", "slower"]
    assert [point["evaluation"] for point in points] == three
    assert points[2]["ratio"] == pytest.approx(1.5, abs=1e-3)
    assert points[2]["interval"][0] < 1.5 < points[2]["interval"][1]
    assert (points[0]["value"], points[0]["low"], points[0]["high"]) == (100.0, 99.0, 101.0)


def test_a_revision_that_came_late_stands_where_the_suite_lists_it(api, node):
    api.bring_suite()
    for label in ("v3", "v1", "v2"):
        evaluate(api, node, label, 1.0)
    assert [point["label"] for point in history(api)["points"]] == ["v1", "v2", "v3"]


def test_a_failed_revision_is_a_point_without_a_value(api, node, three):
    api.bring_suite(revisions=["v1_naive", "v2_blocked", "v3_packed", "v4"])
    failure = Failure(reason="wrong_values", stage="verify", message="off by one")
    evaluate(api, node, "v4", 1.0, failure=failure)
    last = history(api)["points"][-1]
    assert (last["label"], last["outcome"], last["value"]) == ("v4", "incorrect", None)


def test_what_the_infrastructure_broke_is_no_point(api, node, three):
    again = api.ok(
        "POST", "/evaluations", json={"revision": history(api)["points"][0]["revision"], "device_class": "cpu"}
    )
    failure = Failure(reason="device_unhealthy", stage="measure", message="it fell off the bus")
    node.finish(node.claim(again["id"]), report(failure=failure))
    first = history(api)["points"][0]
    assert (first["evaluation"], first["outcome"]) == (three[0], "passed")


def test_a_repeat_takes_the_place_of_the_first_evaluation(api, node, three):
    again = api.ok(
        "POST", "/evaluations", json={"revision": history(api)["points"][0]["revision"], "device_class": "cpu"}
    )
    node.finish(node.claim(again["id"]), report(*(case_result(case) for case in CASES)))
    points = history(api)["points"]
    assert len(points) == 3
    assert points[0]["evaluation"] == again["id"]


def test_a_history_is_read_in_pages_from_its_newest_end(api, three):
    newest = history(api, limit=2)["points"]
    assert [point["label"] for point in newest] == ["v2", "v3"]
    earlier = history(api, limit=2, before=newest[0]["revision"])["points"]
    assert [point["label"] for point in earlier] == ["v1"]


def test_a_page_before_an_unknown_revision_is_refused(api, three):
    asked = {"device_class": "cpu", "case": CASES[0], "metric": "time", "before": "rev_nobody"}
    assert api.problem("GET", "/projects/local/kernels/sgemm_cpu/history", params=asked)["type"] == "unknown-revision"


def test_a_series_without_points_is_empty_and_an_unknown_one_is_refused(api):
    api.bring_suite()
    assert history(api)["points"] == []
    for wrong in ({"case": "m=1,n=1,k=1"}, {"device_class": "h200"}):
        asked = {"device_class": "cpu", "case": CASES[0], "metric": "time", **wrong}
        problem = api.problem("GET", "/projects/local/kernels/sgemm_cpu/history", params=asked)
        assert (problem["type"], problem["field"]) == ("unknown-series", next(iter(wrong)))


def test_device_classes_are_never_mixed(api, three):
    bring(api, HEADER + f'sgemm_cpu,h200,v9,,"{CASES[0]}",time,1.0,us,\n')
    assert [point["label"] for point in history(api)["points"]] == ["v1", "v2", "v3"]
    assert [point["label"] for point in history(api, device_class="h200")["points"]] == ["v9"]


def test_a_long_history_comes_in_a_fixed_number_of_queries(api, running):
    """Charts of a long history took 30 s, a minute, or never ended elsewhere."""
    rows = "".join(
        f"long,h200,r{place},{f'r{place - 1}' if place else ''},c1,time,{100 + place % 7 / 1000},us,\n"
        for place in range(300)
    )
    bring(api, HEADER + rows)
    queries = []
    event.listen(running.database.engine, "before_cursor_execute", lambda *call: queries.append(call[2]))
    asked = {"device_class": "h200", "case": "c1", "metric": "time"}
    points = api.ok("GET", "/projects/local/kernels/long/history", params=asked)["points"]
    assert [point["label"] for point in points] == [f"r{place}" for place in range(300)]
    assert sum(query.startswith(("SELECT", "WITH")) for query in queries) <= 12
