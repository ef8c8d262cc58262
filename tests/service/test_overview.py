import pytest
from sqlalchemy import event

from contract.api import Scope
from contract.report import Failure
from contract.statics import FunctionStatics
from tests.service.client import CASES, case_result, node_info, report
from tests.service.test_history import evaluate, history
from tests.service.test_imports import HEADER, bring


def overview(api):
    return api.ok("GET", "/projects/local/overview")


def standing(api, kernel="sgemm_cpu"):
    return next(each for each in overview(api)["standings"] if each["kernel"] == kernel)


def test_an_empty_project_has_no_standings_and_a_kernel_without_results_is_named(api):
    assert overview(api) == {
        "project": "local",
        "standings": [],
        "without_results": [],
        "queues": [],
        "nodes": [],
    }
    api.bring_suite()
    assert overview(api)["without_results"] == ["sgemm_cpu"]


def test_a_standing_is_the_newest_result_of_the_mainline_against_its_base(api, node):
    api.bring_suite()
    first = evaluate(api, node, "v1")
    alone = standing(api)
    assert (alone["label"], alone["base"], alone["worst_ratio"], alone["evaluation"]) == ("v1", None, None, first)
    assert (alone["metric"], alone["unit"], alone["value"], alone["case"]) == ("throughput", "GFLOPS", 5.2, CASES[0])
    evaluate(api, node, "v2", 0.8)
    now = standing(api)
    assert (now["label"], now["base"], now["outcome"], now["verdict"]) == ("v2", "v1", "passed", "faster")
    assert now["worst_ratio"] == pytest.approx(0.8, abs=1e-3)
    assert (now["correct"], now["bad"], now["cases"]) == (True, False, 2)
    assert now["sparkline"] == [5.2, 5.2]
    assert now["baseline"] == "torch 2.13.0, MKL"


def test_what_failed_stands_on_top_without_a_value_and_keeps_its_line(api, node):
    bring(api, HEADER + "aaa,h200,v1,,c1,throughput,100,TFLOPS,\n")
    api.bring_suite()
    evaluate(api, node, "v1")
    assert [each["kernel"] for each in overview(api)["standings"]] == ["aaa", "sgemm_cpu"]
    failure = Failure(reason="wrong_values", stage="verify", message="off by one")
    evaluate(api, node, "v2", 1.0, failure=failure)
    worst = overview(api)["standings"][0]
    assert (worst["kernel"], worst["outcome"], worst["bad"], worst["correct"]) == (
        "sgemm_cpu",
        "incorrect",
        True,
        False,
    )
    assert (worst["value"], worst["sparkline"]) == (None, [5.2])


def test_an_infrastructure_error_changes_nobodys_standing(api, node):
    api.bring_suite()
    evaluate(api, node, "v1")
    before = standing(api)
    failure = Failure(reason="device_unhealthy", stage="measure", message="it fell off the bus")
    evaluate(api, node, "v2", 1.0, failure=failure)
    assert standing(api) == before


def test_a_new_order_of_the_suite_moves_the_standing(api, node):
    api.bring_suite()
    for label, ratio in (("v1", None), ("v2", 1.0)):
        evaluate(api, node, label, ratio)
    assert standing(api)["label"] == "v2"
    api.bring_suite(revisions=["v2_blocked", "v1_naive"])
    assert standing(api)["label"] == "v1"


def test_imported_histories_stand_with_a_thinned_line(api):
    rows = "".join(f"long,h200,r{place},,c1,time,{1000 if place == 77 else 100},us,\n" for place in range(300))
    bring(api, HEADER + rows)
    found = standing(api, "long")
    assert (found["metric"], found["label"], found["correct"]) == ("time", "r299", None)
    assert len(found["sparkline"]) <= 40
    assert max(found["sparkline"]) == 1000


def test_queue_and_nodes_at_a_glance(api, node):
    api.bring_suite()
    waiting = api.submit("v1")["evaluations"][0]
    api.submit("v2")
    [queue] = overview(api)["queues"]
    assert (queue["device_class"], queue["queued"], queue["running"]) == ("cpu", 2, 0)
    assert queue["oldest_queued_at"] is not None
    node.claim(waiting)
    seen = overview(api)
    assert (seen["queues"][0]["queued"], seen["queues"][0]["running"]) == (1, 1)
    assert [(each["name"], each["state"]) for each in seen["nodes"]] == [("node-1", "busy")]


def test_a_silent_node_is_offline_and_not_busy(make_running):
    running = make_running(node_offline_after_s=1e-6)
    api = running.api(running.token(Scope.ADMIN))
    worker = running.api(running.token(Scope.WORKER, node="node-1"))
    api.bring_suite()
    worker.claim(api.submit("v1")["evaluations"][0])
    assert [each["state"] for each in overview(api)["nodes"]] == ["offline"]
    assert node_info()["name"] == "node-1"


def test_an_overview_takes_as_many_queries_for_many_kernels_as_for_one(api, running):
    queries = []

    def count():
        queries.clear()
        overview(api)
        return sum(query.lstrip().startswith(("SELECT", "WITH")) for query in queries)

    event.listen(running.database.engine, "before_cursor_execute", lambda *call: queries.append(call[2]))
    bring(api, HEADER + "k0,h200,v1,,c1,time,1,us,\n")
    one = count()
    bring(
        api, HEADER + "".join(f"k{n},{klass},v1,,c1,time,1,us,\n" for n in range(1, 20) for klass in ("h200", "b300"))
    )
    assert count() == one <= 8


def test_machine_code_becomes_series_of_no_case(api, node):
    api.bring_suite()
    statics = (
        FunctionStatics(
            function="a", architecture="x86-64", registers=12, code_bytes=100, spill_store_bytes=8, spill_load_bytes=0
        ),
        FunctionStatics(
            function="b", architecture="x86-64", registers=40, code_bytes=50, spill_store_bytes=0, spill_load_bytes=4
        ),
        FunctionStatics(function="b", architecture="sm_90a", registers=255, code_bytes=9999),
    )
    evaluate(api, node, "v1", statics=statics)
    for metric, value in (("registers", 40), ("code_bytes", 150), ("spill_bytes", 12)):
        [point] = history(api, case="", metric=metric)["points"]
        assert point["value"] == value, metric
    assert "registers" in api.ok("GET", "/projects/local/kernels/sgemm_cpu")["metrics"]
    assert api.ok("GET", "/projects/local/kernels/sgemm_cpu")["cases"] == list(CASES)


def test_instructions_are_series_and_a_class_that_the_code_has_none_of_is_zero(api, node):
    api.bring_suite()
    for label, wgmma in (("v1", 0), ("v2", 16)):
        counted = {"wgmma": wgmma, "barrier": 4}
        statics = [
            FunctionStatics(
                function=name,
                architecture="x86-64",
                instructions=counted,
                static_shared_bytes=size,
                dynamic_shared_bytes=64,
            )
            for name, size in (("a", 512), ("b", 64))
        ]
        evaluate(api, node, label, 1.0, statics=statics)
    for metric, values in (
        ("wgmma_instructions", [0, 32]),
        ("barrier_instructions", [8, 8]),
        ("mma_instructions", [0, 0]),
        ("static_shared_bytes", [512, 512]),
        ("shared_bytes", [576, 576]),
    ):
        assert [point["value"] for point in history(api, case="", metric=metric)["points"]] == values, metric


def test_code_for_cards_that_the_node_has_not_is_a_series_an_architecture(api, node):
    api.bring_suite()
    statics = [FunctionStatics(function="a", architecture=f"sm_{n}", registers=n) for n in (89, 90)]
    evaluate(api, node, "v1", statics=statics)
    assert [history(api, case="", metric=f"registers.sm_{n}")["points"][0]["value"] for n in (89, 90)] == [89, 90]
    api.bring_suite(device_classes=["cpu", "h200"])
    assert history(api, case="", metric="registers.sm_89", device_class="h200")["points"] == []
    known = api.ok("GET", "/projects/local/kernels/sgemm_cpu")
    assert known["metrics"][-2:] == ["registers.sm_89", "registers.sm_90"]


def test_statics_of_a_failed_verification_are_no_points(api, node):
    api.bring_suite()
    statics = (FunctionStatics(function="a", architecture="x86-64", registers=12),)
    failure = Failure(reason="wrong_values", stage="verify", message="off by one")
    evaluate(api, node, "v1", statics=statics, failure=failure)
    [point] = history(api, case="", metric="registers")["points"]
    assert (point["value"], point["outcome"]) == (None, "incorrect")


def test_a_case_result_of_two_reports_refreshes_the_standing_each_time(api, node):
    api.bring_suite()
    evaluation = evaluate(api, node, "v1")
    again = api.ok("POST", "/evaluations", json={"revision": standing(api)["revision"], "device_class": "cpu"})
    job = node.claim(again["id"])
    node.finish(job, report(*(case_result(case) for case in CASES)))
    assert standing(api)["evaluation"] == again["id"] != evaluation
