import pytest

from contract.report import Environment, Failure
from contract.statics import FunctionStatics
from tests.service.client import CASES, case_result, report
from tests.service.test_history import evaluate
from tests.service.test_imports import bring


def compare(api, base, head, *, kernel="sgemm_cpu", device_class="cpu"):
    query = {"base": base, "head": head, "device_class": device_class}
    return api.ok("GET", f"/projects/local/kernels/{kernel}/compare", params=query)


@pytest.fixture
def three(api, node):
    api.bring_suite()
    return [evaluate(api, node, label, ratio) for label, ratio in (("v1", None), ("v2", 0.8), ("v3", 1.5))]


def test_revisions_that_were_measured_side_by_side_come_with_their_verdict(api, three):
    found = compare(api, "v2", "v3")
    assert found["evaluation"] == three[2]
    assert (found["base"]["label"], found["head"]["label"]) == ("v2", "v3")
    assert [case["case"] for case in found["cases"]] == list(CASES)
    for case in found["cases"]:
        assert (case["verdict"], case["measured"]) == ("slower", "pairs")
        assert case["interval"][0] < case["ratio"] < case["interval"][1]
        assert case["smallest_detectable"] > 0
        assert case["head"]["time"] == case["base"]["time"] == 100.0


def test_revisions_that_were_measured_separately_have_a_ratio_and_no_verdict(api, three):
    found = compare(api, "v1", "v3")
    assert found["evaluation"] is None
    for case in found["cases"]:
        assert (case["verdict"], case["interval"], case["measured"]) == (None, None, "separately")
        assert case["ratio"] == pytest.approx(1.0)


def test_the_other_way_round_is_not_what_was_measured(api, three):
    assert compare(api, "v3", "v2")["evaluation"] is None


def test_revisions_are_named_by_label_id_or_digest(api, three):
    by_label = compare(api, "v1", "v2")
    for part in ("id", "digest"):
        assert compare(api, by_label["base"][part], by_label["head"][part]) == by_label


def test_a_name_that_nothing_has_is_refused_with_its_side(api, three):
    query = {"base": "v1", "head": "v99", "device_class": "cpu"}
    problem = api.problem("GET", "/projects/local/kernels/sgemm_cpu/compare", params=query)
    assert (problem["type"], problem["field"]) == ("unknown-revision", "head")


def test_a_revision_that_was_not_measured_on_the_class_has_nothing_to_show(api, three):
    assert compare(api, "v1", "v2", device_class="h200")["cases"] == []


def test_imported_revisions_are_compared_as_published(api):
    bring(api)
    cases = {case["case"]: case for case in compare(api, "v3", "v4", kernel="hgemm", device_class="rtx4090d")["cases"]}
    assert {case["measured"] for case in cases.values()} == {"published"}
    assert cases["m4096-n4096-k64"]["verdict"] == "slower"
    assert cases["m1024-n1024-k1024"]["verdict"] == "same"
    assert cases["m8192-n8192-k8192"]["head"]["throughput_over_baseline"] == 0.917


def code(size):
    return (FunctionStatics(function="gemm", architecture="x86-64", code_bytes=size),)


def built_by(compiler):
    return Environment(device="a CPU", toolchain={"g++": compiler})


def sizes(found):
    return [[each["code_bytes"] for each in found[side]] for side in ("base_statics", "statics")]


def test_machine_code_is_compared_as_one_evaluation_built_it(api, node):
    api.bring_suite()
    evaluate(api, node, "v1", statics=code(100), environment=built_by("13"))
    evaluate(api, node, "v2", 1.0, statics=code(200), base_statics=code(90), environment=built_by("14"))
    found = compare(api, "v1", "v2")
    assert (sizes(found), found["statics_apart"]) == ([[90], [200]], None)


def test_machine_code_of_two_evaluations_is_compared_where_one_toolchain_built_it(api, node):
    api.bring_suite()
    for label, compiler, size in (("v1", "13", 100), ("v2", "14", 200), ("v3", "13", 300)):
        evaluate(api, node, label, 1.0, statics=code(size), environment=built_by(compiler))
    assert sizes(compare(api, "v1", "v3")) == [[100], [300]]
    apart = compare(api, "v1", "v2")
    assert sizes(apart) == [[], [200]]
    assert apart["statics_apart"] == "built by different toolchains: v1 by g++ 13, v2 by g++ 14"
    # Built again by the newer one, it can be compared.
    again = api.ok("POST", "/evaluations", json={"revision": apart["base"]["id"], "device_class": "cpu"})
    job = node.claim(again["id"])
    node.finish(job, report(*map(case_result, CASES), statics=code(110), environment=built_by("14")))
    assert sizes(compare(api, "v1", "v2")) == [[110], [200]]
    assert sizes(compare(api, "v1", "v3")) == [[100], [300]]


def test_the_hosts_compiler_has_no_part_in_a_gpus_machine_code(api, node):
    api.bring_suite()
    for label, host in (("v1", "13"), ("v2", "14")):
        toolchain = {"nvcc": "13.0.88", "g++": host}
        evaluate(api, node, label, statics=code(100), environment=Environment(device="a card", toolchain=toolchain))
    assert compare(api, "v1", "v2")["statics_apart"] is None


def test_failed_code_is_not_compared(api, node):
    api.bring_suite()
    failure = Failure(reason="wrong_values", stage="verify", message="off by one")
    evaluate(api, node, "v1", statics=code(100), failure=failure, environment=built_by("13"))
    evaluate(api, node, "v2", statics=code(200), environment=built_by("13"))
    found = compare(api, "v1", "v2")
    assert (sizes(found), found["statics_apart"]) == ([[], [200]], None)
