from pathlib import Path

import pytest

from contract.api import Scope
from service.history_file import parse
from service.problems import ProblemError

PUBLISHED = (Path(__file__).parents[2] / "data" / "published_history.csv").read_text()
HEADER = "kernel,device_class,label,base,case,metric,value,unit,note\n"
CASE = "b1-h64-s1024-d128-full"


def bring(api, csv=PUBLISHED, **changes):
    return api.ok("POST", "/projects/local/imports", json={"csv": csv, "provenance": "a table", **changes})


def refusal(api, csv, **changes):
    return api.problem("POST", "/projects/local/imports", json={"csv": csv, "provenance": "a table", **changes})


def history(api, kernel="attention_b300", device_class="b300", case=CASE, metric="throughput"):
    query = {"device_class": device_class, "case": case, "metric": metric}
    return api.ok("GET", f"/projects/local/kernels/{kernel}/history", params=query)


def rows(*lines):
    return HEADER + "".join(line + "\n" for line in lines)


def test_the_published_attention_history_is_judged_against_what_its_author_measured_against(api):
    answer = bring(api)
    assert answer["kernels"] == ["attention_b300", "hgemm", "attention_prefill"]
    assert answer["revisions"] == answer["added"] == 22
    verdicts = {point["label"]: point["verdict"] for point in history(api)["points"]}
    assert list(verdicts) == [f"V{number}" for number in range(20, 37)]
    assert {label for label, verdict in verdicts.items() if verdict == "slower"} == {"V22", "V32", "V34", "V36"}
    assert {label for label, verdict in verdicts.items() if verdict == "inconclusive"} == {"V23", "V35"}
    assert [label for label, verdict in verdicts.items() if verdict == "same"] == ["V31"]
    assert [label for label, verdict in verdicts.items() if verdict is None] == ["V20"]
    assert sum(verdict == "faster" for verdict in verdicts.values()) == 9


def test_a_reverted_revision_is_nobodys_base(api):
    bring(api)
    bases = {point["label"]: point["base"] for point in history(api)["points"]}
    assert bases["V23"] == "V21"
    assert bases["V33"] == "V30"
    assert bases["V35"] == "V33"


def test_the_same_file_twice_adds_nothing_twice(api):
    bring(api)
    before = history(api)
    assert bring(api)["added"] == 0
    assert history(api) == before
    assert len({kernel["name"] for kernel in api.ok("GET", "/projects/local/kernels")["items"]}) == 3


def labels(api, kernel="k", device_class="h200"):
    return [point["label"] for point in history(api, kernel, device_class, "c1", "time")["points"]]


def times(*names, device_class="h200"):
    return [f"k,{device_class},{name},,c1,time,{100 + int(name[1:])},us," for name in names]


def test_what_a_later_file_brings_from_in_between_stands_where_the_file_has_it(api):
    bring(api, rows(*times("v2", "v4")))
    assert bring(api, rows(*times("v1", "v2", "v3", "v4", "v5")))["added"] == 3
    assert labels(api) == ["v1", "v2", "v3", "v4", "v5"]
    bring(api, rows(*times("v0", "v1")))
    bring(api, rows(*times("v6")))
    assert labels(api) == ["v0", "v1", "v2", "v3", "v4", "v5", "v6"]


def test_what_a_later_file_brings_after_its_base_stands_at_the_end(api):
    bring(api, rows(*times("v1", "v2", "v3")))
    bring(api, rows("k,h200,v1,,c1,time,101,us,", "k,h200,v4,v1,c1,time,104,us,"))
    assert labels(api) == ["v1", "v2", "v3", "v4"]


def test_a_revision_that_comes_later_into_its_place_is_the_cause_from_then_on(api):
    slow = [f"k,h200,w{number},,c1,time,{120 + number % 2},us," for number in range(4, 20)]
    fast = [f"k,h200,v{number},,c1,time,{100 + number % 2},us," for number in range(16)]
    bring(api, rows(*fast, *slow))
    bring(api, rows(*fast, "k,h200,w3,,c1,time,120.5,us,", *slow))
    found = api.ok("GET", "/projects/local/regressions")["items"]
    assert {each["revision"]["label"]: each["state"] for each in found} == {"w3": "new", "w4": "noise"}


def test_classes_of_one_file_share_one_order(api):
    bring(api, rows(*times("v1", "v3"), *times("v1", "v2", "v3", device_class="b300")))
    assert labels(api, device_class="b300") == ["v1", "v2", "v3"]


@pytest.mark.parametrize("second", [["v2", "v1"], ["v3", "v0", "v2"]])
def test_another_order_under_the_same_provenance_is_refused_with_its_line_and_changes_nothing(api, second):
    bring(api, rows(*times("v1", "v2", "v3")))
    problem = refusal(api, rows(*times(*second)))
    assert (problem["status"], problem["type"]) == (409, "history-differs")
    assert problem["detail"].startswith(f"line {1 + len(second)}, column label: {second[-1]} comes after {second[0]}")
    assert labels(api) == ["v1", "v2", "v3"]
    bring(api, rows(*times(*second)), provenance="another table")


def test_a_file_that_has_grown_adds_its_new_revisions_only(api):
    first = rows("k,h200,v1,,c1,time,2.0,us,", "k,h200,v2,v1,c1,time,1.0,us,twice as fast")
    bring(api, first)
    answer = bring(api, first + "k,h200,v3,v2,c1,time,1.5,us,\n")
    assert (answer["revisions"], answer["added"]) == (3, 1)
    points = history(api, "k", "h200", "c1", "time")["points"]
    assert [(point["label"], point["verdict"]) for point in points] == [
        ("v1", None),
        ("v2", "faster"),
        ("v3", "slower"),
    ]
    assert points[1]["summary"] == "twice as fast"


def test_a_stored_history_is_not_rewritten(api):
    bring(api, rows("k,h200,v1,,c1,time,2.0,us,"))
    problem = refusal(api, rows("k,h200,v1,,c1,time,2.5,us,"))
    assert problem["type"] == "history-differs"
    assert "line 2, column value: time of v1 is 2 already" in problem["detail"]
    assert history(api, "k", "h200", "c1", "time")["points"][0]["value"] == 2.0


def test_another_source_of_the_same_labels_is_another_history(api):
    bring(api, rows("k,h200,v1,,c1,time,2.0,us,"))
    assert bring(api, rows("k,h200,v1,,c1,time,2.5,us,"), provenance="another table")["added"] == 1


def test_a_baselines_values_are_no_revisions_and_stand_beside_them(api):
    bring(api)
    series = history(api)
    assert (series["baseline"], series["baseline_value"]) == ("torch_sdpa", 1156.0)
    assert series["points"][-1]["of_baseline"] == pytest.approx(696.25 / 1156)
    prefill = history(api, "attention_prefill", "rtx4090d", "b4-h32-kv8-s512-d128-causal", "time")
    assert prefill["points"][0]["of_baseline"] == pytest.approx(0.114 / 0.127)
    assert (prefill["baseline"], prefill["baseline_value"]) == ("sdpa_flash", 0.114)
    assert [point["label"] for point in prefill["points"]] == ["triton_fa2"]


def test_shares_of_the_baseline_are_judged_where_there_is_no_throughput(api):
    bring(api)
    points = history(api, "hgemm", "rtx4090d", "m4096-n4096-k64", "throughput_over_baseline")["points"]
    assert [(point["label"], point["verdict"]) for point in points] == [
        ("v2", None),
        ("v3", "faster"),
        ("v4", "slower"),
    ]
    assert points[-1]["ratio"] == pytest.approx(0.862 / 0.530)
    assert points[-1]["interval"] is None


def test_other_metrics_are_kept_and_not_judged(api):
    """A counter that isn't time blocked a merge though the runtime improved."""
    bring(api, rows(*(f"k,h200,v{n},{'v1' if n == 2 else ''},c1,spills,{10**n},count," for n in (1, 2))))
    series = history(api, "k", "h200", "c1", "spills")
    assert [point["value"] for point in series["points"]] == [10.0, 100.0]
    assert [point["verdict"] for point in series["points"]] == [None, None]
    assert series["better"] is None


def test_the_margin_of_the_import_decides_what_counts(api):
    csv = rows("k,h200,v1,,c1,time,100,us,", "k,h200,v2,v1,c1,time,103,us,")
    bring(api, csv, margin=0.05)
    assert history(api, "k", "h200", "c1", "time")["points"][1]["verdict"] == "inconclusive"
    bring(api, csv, provenance="again")
    assert history(api, "k", "h200", "c1", "time")["points"][-1]["verdict"] == "slower"


def test_a_measured_history_of_a_node_keeps_its_shares_and_comes_in_the_nodes_units(api):
    csv = "# one H200, driver 580, 2026-12-01\n" + rows(
        '"hgemm",h200,v1,,"m=64,n=64,k=64",time,0.01,ms,',
        'hgemm,h200,v1,,"m=64,n=64,k=64",throughput_over_baseline,0.5,1,',
        'hgemm,h200,v2,v1,"m=64,n=64,k=64",time,5,us,baselines are not meant by this note',
        'hgemm,h200,v2,v1,"m=64,n=64,k=64",of_baseline,0.9,ratio,',
        'hgemm,h200,cuBLAS-13,,"m=64,n=64,k=64",time,4.5,us,baseline',
    )
    bring(api, csv)
    series = history(api, "hgemm", "h200", "m=64,n=64,k=64", "time")
    assert series["unit"] == "us"
    assert [point["value"] for point in series["points"]] == [10.0, 5.0]
    assert [point["of_baseline"] for point in series["points"]] == [0.5, 0.9]
    assert series["baseline"] == "cuBLAS-13"


@pytest.mark.parametrize(
    ("row", "where", "allowed"),
    [
        ("K,h200,v1,,c1,time,1,us,", "line 2, column kernel: 'K'", "lower-case letters"),
        ("k,h100,v1,,c1,time,1,us,", "line 2, column device_class: 'h100'", "rtx4090, rtx4090d, b300, h200, cpu"),
        ("k,h200,,,c1,time,1,us,", "line 2, column label: ''", "letters, digits"),
        ("k,h200,v1,v0,c1,time,1,us,", "line 2, column base: 'v0'", "no revision of k on h200 above this line"),
        ("k,h200,v1,v1,c1,time,1,us,", "line 2, column base: 'v1'", "an earlier one"),
        ("k,h200,v1,,c 1,time,1,us,", "line 2, column case: 'c 1'", "letters, digits"),
        ("k,h200,v1,,c1,Time,1,us,", "line 2, column metric: 'Time'", "lower-case letters"),
        ("k,h200,v1,,c1,time,fast,us,", "line 2, column value: 'fast'", "a finite number"),
        ("k,h200,v1,,c1,time,1_0,us,", "line 2, column value: '1_0'", "a finite number"),
        ("k,h200,v1,,c1,time,1e400,us,", "line 2, column value: '1e400'", "a finite number"),
        ("k,h200,v1,,c1,time,nan,us,", "line 2, column value: 'nan'", "a finite number"),
        ("k,h200,v1,,c1,time,0,us,", "line 2, column value: '0'", "a number above 0"),
        ("k,h200,v1,,c1,time,1,,", "line 2, column unit: ''", "1 to 32 characters"),
        ("k,h200,v1,,c1,time,1,us", "line 2: 8 cells", "9 are allowed"),
        ('k,h200,v1,,c1,time,1,us,"never closed', "line 2: not CSV", ""),
    ],
)
def test_a_bad_row_is_named_by_line_and_column_with_what_is_allowed(row, where, allowed):
    with pytest.raises(ProblemError) as raised:
        parse(HEADER + row + "\n")
    assert raised.value.problem.type.endswith(":bad-csv")
    assert raised.value.problem.detail.startswith(where)
    assert allowed in raised.value.problem.detail


@pytest.mark.parametrize(
    ("csv", "detail"),
    [
        ("", "line 1: the file has no header"),
        (HEADER, "line 1: there are no rows under the header"),
        (HEADER.replace("note", "notes") + "a\n", "line 1, column notes: no such column"),
        (HEADER.replace(",note", "") + "a\n", "line 1, column note: must be there once"),
        ("# one\n\n" + HEADER + "\nk,h200,v1,,c1,time,x,us,\n", "line 5, column value"),
    ],
)
def test_a_file_without_the_columns_or_without_rows_is_refused(csv, detail):
    with pytest.raises(ProblemError) as raised:
        parse(csv)
    assert raised.value.problem.detail.startswith(detail)


@pytest.mark.parametrize(
    ("last", "detail"),
    [
        ("k,h200,v1,,c1,time,3,us,", "line 4, column metric: time of v1 on this case is in line 2 already"),
        ("k,h200,v3,,c1,time,3,ms,", "line 4, column unit: 'ms', but 'us' in line 2"),
        ("k,h200,v2,v1,c2,time,3,us,", None),
        ("k,h200,v2,,c2,time,3,us,", None),
    ],
)
def test_rows_that_contradict_each_other_are_refused(last, detail):
    csv = rows("k,h200,v1,,c1,time,1,us,", "k,h200,v2,v1,c1,time,2,us,", last)
    if detail is None:
        assert len(parse(csv)) == 1
        return
    with pytest.raises(ProblemError) as raised:
        parse(csv)
    assert raised.value.problem.detail.startswith(detail)


def test_a_bad_file_stores_nothing_of_its_good_rows(api):
    problem = refusal(api, rows("k,h200,v1,,c1,time,1,us,", "k,h200,v2,v1,c1,time,zero,us,"))
    assert (problem["type"], problem["field"]) == ("bad-csv", "csv")
    assert api.ok("GET", "/projects/local/kernels")["items"] == []


def test_a_unit_that_differs_from_the_stored_one_is_refused_and_the_rest_undone(api):
    bring(api, rows("k,h200,v1,,c1,time,2.0,us,"))
    problem = refusal(api, rows("k,h200,v2,,c1,time,2.0,ms,"), provenance="another")
    assert problem["detail"].startswith("line 2, column unit: 'ms'")
    assert [point["label"] for point in history(api, "k", "h200", "c1", "time")["points"]] == ["v1"]


def test_importing_needs_the_scope_maintain(running):
    submitter = running.api(running.token(Scope.SUBMIT))
    assert refusal(submitter, PUBLISHED)["type"] == "forbidden"
    maintainer = running.api(running.token(Scope.MAINTAIN))
    assert bring(maintainer)["added"] == 22


def test_a_margin_and_a_provenance_are_required_to_make_sense(api):
    assert refusal(api, PUBLISHED, margin=0.0)["field"] == "margin"
    assert refusal(api, PUBLISHED, provenance="")["field"] == "provenance"
    problem = api.problem("POST", "/projects/nobody/imports", json={"csv": PUBLISHED, "provenance": "x"})
    assert problem["type"] == "unknown-project"


def test_an_imported_kernel_takes_a_suite_and_submissions_later(api):
    bring(api, rows("sgemm_cpu,cpu,v0,,c1,time,2.0,us,"))
    api.bring_suite()
    submitted = api.submit("v1")
    assert api.evaluation(submitted["evaluations"][0])["base"] is None
    kernel = api.ok("GET", "/projects/local/kernels")["items"][0]
    assert (kernel["revisions"], kernel["operator"]) == (2, "gemm")
    assert kernel["cases"][-1] == "c1"


def test_an_imported_evaluation_is_read_and_listed_like_any_other(api):
    bring(api, HEADER + f"k,h200,v1,,{CASE},time,1.0,us,\nk,h200,v2,v1,{CASE},time,2.0,us,\n")
    listed = api.ok("GET", "/evaluations", params={"project": "local"})["items"]
    assert [each["revision"]["label"] for each in listed] == ["v2", "v1"]
    found = api.evaluation(listed[0]["id"])
    assert (found["suite_digest"], found["outcome"], found["reproduce"]) == (None, "slower", None)
    assert [case["case"] for case in found["cases"]] == [CASE]
    brief = api.ok("GET", "/evaluations", params={"project": "local", "brief": True})["items"]
    assert [(each["id"], each["cases"]) for each in brief] == [(each["id"], []) for each in listed]
