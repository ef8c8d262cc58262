"""What charts are made of beside the points: downloads, badges, scaling over sizes, process values."""

import csv
import io
import xml.etree.ElementTree as ET

import pytest

from contract.api import Scope
from contract.report import Failure, Metric
from contract.views import Standing
from service.badges import badge_svg
from service.tables import COLUMNS
from tests.service.client import CASES, SUITE, case_result, report, submission
from tests.service.test_history import evaluate, history
from tests.service.test_imports import HEADER, bring

SVG = "{http://www.w3.org/2000/svg}"


def get(api, path, **options):
    return api.http.get(f"/projects/local/kernels/{path}", **options)


def chart(**query):
    return {"device_class": "cpu", "case": CASES[0], "metric": "time", **query}


@pytest.fixture
def two(api, node):
    api.bring_suite()
    return [evaluate(api, node, label, ratio) for label, ratio in (("v1", None), ("v2", 1.5))]


def test_a_series_is_downloaded_as_csv(api, two):
    answer = get(api, "sgemm_cpu/history.csv", params=chart())
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert answer.headers["content-disposition"] == (f'attachment; filename="sgemm_cpu_cpu_{CASES[0]}_time.csv"')
    rows = list(csv.DictReader(io.StringIO(answer.text, newline="")))
    assert tuple(rows[0]) == COLUMNS
    assert [(row["label"], row["value"], row["unit"], row["verdict"]) for row in rows] == [
        ("v1", "100.0", "us", ""),
        ("v2", "100.0", "us", "slower"),
    ]
    assert float(rows[1]["ratio"]) == pytest.approx(1.5, abs=1e-3)


def test_a_series_is_downloaded_as_json(api, two):
    answer = get(api, "sgemm_cpu/history", params=chart(download=True))
    assert answer.headers["content-disposition"].endswith('_time.json"')
    assert answer.json() == history(api)


def test_a_summary_is_no_formula_in_a_spreadsheet(api, node):
    api.bring_suite()
    bundle = submission("v1")
    bundle["files"]["kernel.toml"] = bundle["files"]["kernel.toml"].replace("the v1 one", "=cmd|' /C calc'!A0")
    evaluation = api.ok("POST", "/revisions", json=bundle)["evaluations"][0]
    node.finish(node.claim(evaluation), report())
    rows = list(csv.DictReader(io.StringIO(get(api, "sgemm_cpu/history.csv", params=chart()).text, newline="")))
    assert rows[0]["summary"].startswith("'=")


def test_an_unchanged_history_is_not_sent_again_and_a_changed_one_is(api, node, two):
    first = get(api, "sgemm_cpu/history", params=chart())
    tag = {"If-None-Match": first.headers["etag"]}
    assert get(api, "sgemm_cpu/history", params=chart(), headers=tag).status_code == 304
    weak = {"If-None-Match": f'"another", W/{tag["If-None-Match"]}'}
    assert get(api, "sgemm_cpu/history", params=chart(), headers=weak).status_code == 304
    assert get(api, "sgemm_cpu/history", params=chart(), headers={"If-None-Match": '"another"'}).status_code == 200
    assert get(api, "sgemm_cpu/history", params=chart(points=10), headers=tag).status_code == 200
    evaluate(api, node, "v3", 1.0)
    second = get(api, "sgemm_cpu/history", params=chart(), headers=tag)
    assert second.status_code == 200
    assert [point["label"] for point in second.json()["points"]] == ["v1", "v2", "v3"]
    failure = Failure(reason="wrong_values", stage="verify", message="off by one")
    evaluate(api, node, "v4", 1.0, failure=failure, checks=())
    api.bring_suite(revisions=["v3_packed", "v2_blocked", "v1_naive"])
    labels = [point["label"] for point in get(api, "sgemm_cpu/history", params=chart()).json()["points"]]
    assert labels[:3] == ["v3", "v2", "v1"]


def test_what_the_series_of_a_class_share_changes_with_each_of_its_revisions(api, node, two):
    def labels(**asked):
        return [point["label"] for point in get(api, "sgemm_cpu/history", params=chart(**asked)).json()["points"]]

    for case in CASES:
        assert labels(case=case) == ["v1", "v2"]
    evaluate(api, node, "v3", 1.0)
    for case in CASES:
        assert labels(case=case) == labels(case=case, mainline=True) == ["v1", "v2", "v3"]
    revision = get(api, "sgemm_cpu/history", params=chart()).json()["points"][1]["revision"]
    assert labels(before=revision) == ["v1"]
    assert labels(after=revision, metric="throughput") == ["v3"]


def test_a_thinned_line_keeps_its_places_extremes_and_marks(api):
    rows = "".join(
        f"long,h200,r{place},{f'r{place - 1}' if place else ''},c1,time,{100 + place * 1e-4},us,\n"
        for place in range(120)
    )
    rows = rows.replace("r77,r76,c1,time,100.0077", "r77,r76,c1,time,300")
    bring(api, HEADER + rows)
    asked = {"device_class": "h200", "case": "c1", "metric": "time", "points": 20}
    series = get(api, "long/history", params=asked).json()
    assert series["total"] == 120
    shown = {point["place"]: point["label"] for point in series["points"]}
    assert all(label == f"r{place}" for place, label in shown.items())
    assert {0, 77, 78, 119} <= set(shown)  # first, the slower one, the one that is faster than it, last
    assert len(shown) <= 20 + 2
    page = get(api, "long/history", params={**asked, "limit": 10}).json()
    assert (page["total"], page["earlier"]) == (10, page["points"][0]["revision"])
    before = get(api, "long/history", params={**asked, "limit": 10, "before": page["earlier"]}).json()
    assert [point["label"] for point in before["points"]] == [f"r{place}" for place in range(100, 110)]
    after = get(api, "long/history", params={**asked, "after": page["earlier"]}).json()
    assert [point["label"] for point in after["points"]] == [f"r{place}" for place in range(111, 120)]


def test_a_case_family_is_a_curve_over_its_sizes_beside_the_baseline(api, node):
    cases = [{**case, "family": "square"} for case in SUITE["cases"]]
    api.bring_suite(cases=cases)
    job = node.claim(api.submit("v1")["evaluations"][0])
    made = []
    for case, value in zip(CASES, (5.0, 8.0), strict=True):
        metrics = (
            Metric(name="time", unit="us", value=100.0, better="lower"),
            Metric(name="throughput", unit="GFLOPS", value=value, better="higher"),
            Metric(name="throughput_over_baseline", unit="ratio", value=0.5, better="higher"),
            Metric(name="flops_per_byte", unit="FLOP/B", value=value * 2),
        )
        made.append(case_result(case, metrics=metrics))
    node.finish(job, report(*made))
    scaling = get(api, "sgemm_cpu/scaling", params={"device_class": "cpu", "family": "square"}).json()
    assert (scaling["label"], scaling["metric"], scaling["unit"]) == ("v1", "throughput", "GFLOPS")
    [curve] = scaling["curves"]
    assert (curve["family"], curve["axis"]) == ("square", "m=n=k")
    assert [(point["x"], point["value"], point["baseline"]) for point in curve["points"]] == [
        (64, 5.0, 10.0),
        (128, 8.0, 16.0),
    ]
    assert [point["flops_per_byte"] for point in curve["points"]] == [10.0, 16.0]
    assert scaling["roofs"] is None
    for wrong, kind in (({"family": "cubes"}, "unknown-family"), ({"revision": "v9"}, "unknown-revision")):
        asked = {"device_class": "cpu", **wrong}
        assert api.problem("GET", "/projects/local/kernels/sgemm_cpu/scaling", params=asked)["type"] == kind


@pytest.mark.parametrize("path", ["history", "history.csv"])
@pytest.mark.parametrize("name", ["case", "metric"])
def test_a_name_that_no_database_can_hold_names_nothing(api, two, path, name):
    assert get(api, f"sgemm_cpu/{path}", params=chart(**{name: "a\0b"})).status_code in {404, 422}


@pytest.mark.parametrize("metric", ["", "Time", "1e999", "\0", "a b", "a" * 64])
@pytest.mark.parametrize("path", ["scaling", "scaling.csv"])
def test_scaling_by_what_is_no_metrics_name_is_refused(api, two, path, metric):
    asked = {"device_class": "cpu", "metric": metric}
    problem = api.problem("GET", f"/projects/local/kernels/sgemm_cpu/{path}", params=asked)
    assert (problem["status"], problem["field"]) == (422, "metric")


def test_every_chart_can_be_kept_as_csv_and_as_json(api, two):
    def table(path, **asked):
        answer = get(api, f"sgemm_cpu/{path}", params={"device_class": "cpu", **asked})
        assert answer.headers["content-type"].startswith("text/csv")
        assert answer.headers["content-disposition"].startswith("attachment; filename=")
        return list(csv.DictReader(io.StringIO(answer.text, newline="")))

    cases = table("compare.csv", base="v1", head="v2")
    assert [row["case"] for row in cases] == list(CASES)
    assert (cases[0]["verdict"], float(cases[0]["ratio"])) == ("slower", pytest.approx(1.5, abs=1e-3))
    assert (cases[0]["base_time"], cases[0]["head_time"]) == ("100.0", "100.0")
    for path, asked in (("compare", {"base": "v1", "head": "v2"}), ("scaling", {})):
        answer = get(api, f"sgemm_cpu/{path}", params={"device_class": "cpu", "download": True, **asked})
        assert answer.headers["content-disposition"].endswith('.json"')
        assert (
            "content-disposition" not in get(api, f"sgemm_cpu/{path}", params={"device_class": "cpu", **asked}).headers
        )
    api.bring_suite(cases=[{**case, "family": "=square"} for case in SUITE["cases"]])
    scaled = table("scaling.csv", revision="v1")
    assert [(row["family"], row["case"], row["x"]) for row in scaled] == [
        ("'=square", CASES[0], "64"),
        ("'=square", CASES[1], "128"),
    ]
    assert {row["value"] for row in scaled} == {"5.2"}


@pytest.mark.parametrize(("dtype", "unit", "most"), [("fp16", "TFLOPS", 989.5), ("fp32", "GFLOPS", 494_700.0)])
def test_what_the_card_can_do_at_most_is_of_the_kernels_type_and_in_the_curves_unit(api, node, dtype, unit, most):
    api.bring_suite(dtype=dtype, device_classes=["h200"], cases=[{**SUITE["cases"][0], "family": "square"}])
    job = node.claim(api.submit(device_classes=["h200"])["evaluations"][0], device_class="h200")
    metrics = (Metric(name="throughput", unit=unit, value=8.0, better="higher"),)
    node.finish(job, report(case_result(CASES[0], metrics=metrics), device_class="h200"))
    roofs = get(api, "sgemm_cpu/scaling", params={"device_class": "h200"}).json()["roofs"]
    assert roofs["throughput"] == pytest.approx(most)
    assert roofs["throughput"] / roofs["per_intensity"] == pytest.approx(most / {"TFLOPS": 4.8, "GFLOPS": 4800}[unit])


def test_a_comparison_shows_what_each_pair_of_processes_measured(api, two):
    asked = {"device_class": "cpu", "base": "v1", "head": "v2"}
    case = get(api, "sgemm_cpu/compare", params=asked).json()["cases"][0]
    assert len(case["processes"]) == 8
    for pair in case["processes"]:
        assert pair["head"] / pair["base"] == pytest.approx(1.5, rel=1e-3)


def test_an_evaluation_says_how_to_measure_it_again(api, node, two):
    assert api.evaluation(two[1])["reproduce"] == (
        "kernelgate run kernels/sgemm_cpu/v2_blocked --device-class cpu --base kernels/sgemm_cpu/v1_naive"
    )
    commit = "0123456789" * 4
    revision = api.submit("v3", commit=commit)
    said = api.evaluation(revision["evaluations"][0])["reproduce"]
    assert said.startswith(f"git switch --detach {commit} && kernelgate run kernels/sgemm_cpu/v3_packed ")


def test_a_revisions_files_are_read_as_text(api, two):
    revision = history(api)["points"][0]["revision"]
    files = api.ok("GET", f"/revisions/{revision}/files")["files"]
    assert set(files) == {"kernel.toml", "sgemm.cpp"}
    assert files["sgemm.cpp"] == "// v1 \n"
    bring(api, HEADER + "k,h200,v1,,c,time,1.0,us,\n")
    [imported] = api.ok("GET", "/revisions", params={"project": "local", "kernel": "k"})["items"]
    assert api.problem("GET", f"/revisions/{imported['id']}/files")["type"] == "no-files"


def badge(running, path, token=None):
    return running.api(token).http.get(f"{running.url}/badge/{path}.svg")


def test_a_badge_says_where_the_kernel_stands(running, api, two):
    token = running.token(Scope.READ)
    answer = badge(running, "local/sgemm_cpu/cpu", token)
    assert answer.headers["content-type"] == "image/svg+xml"
    assert answer.headers["cross-origin-resource-policy"] == "cross-origin"
    assert ET.fromstring(answer.text).find(f"{SVG}title").text == "sgemm_cpu on cpu: 50 % slower"
    again = running.api(token).http.get(answer.url, headers={"If-None-Match": answer.headers["etag"]})
    assert again.status_code == 304
    empty = badge(running, "local/sgemm_cpu/h200", token)
    assert "no result yet" in empty.text
    assert badge(running, "local/sgemm_cpu/toaster", token).status_code == 422
    assert badge(running, "local/nobody/cpu", token).status_code == 404


def test_a_badge_needs_what_reading_needs(running, make_running, api, two):
    assert badge(running, "local/sgemm_cpu/cpu").status_code == 401
    assert badge(make_running(public_read=True), "local/sgemm_cpu/cpu").status_code == 200


def test_nothing_in_a_badge_is_markup(api, node, two, running):
    content = api.ok("GET", "/projects/local/overview")["standings"][0]
    evil = '<script>alert(1)</script>"&'
    standing = Standing.model_validate(
        {**content, "outcome": "passed", "bad": False, "over_baseline": 0.5, "baseline": evil}
    )
    for svg, _ in (badge_svg("k", "cpu", standing), badge_svg(evil, "cpu", None)):
        tags = {element.tag.removeprefix(SVG) for element in ET.fromstring(svg).iter()}
        assert tags == {"svg", "title", "path", "g", "text"}
