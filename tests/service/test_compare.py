import pytest

from tests.service.client import CASES
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
