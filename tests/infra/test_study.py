"""The study: its page holds its results, draws are judged as whole evaluations are, and others' rules are theirs."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

import verdict
from contract.devices import DeviceClass
from contract.outcomes import Verdict
from contract.samples import Comparison, Round
from scripts.study import __main__ as study
from scripts.study import against_peers, figures, limits, ours, peers, record, recordings, tables

WORKLOADS = {f"{each.source} {each.name}": each for each in recordings.read(study.DATA)}
CALM = tuple(100.0 + 0.01 * place for place in range(8))


def test_the_page_holds_what_the_results_say():
    page = study.PAGE.read_text(encoding="utf-8")
    assert page == study.with_tables(page, json.loads(study.RESULTS.read_text(encoding="utf-8")))


def test_the_results_show_what_is_promised():
    results = json.loads(study.RESULTS.read_text(encoding="utf-8"))
    fresh = [row for row in results["workloads"] if row["fresh"]]
    assert {row["source"] for row in fresh} >= {"h200_fresh"}
    for row in fresh:
        assert row["identical"]["0.005"]["hits"] == 0
        assert row["identical"]["0.005"]["upper"] <= 0.001
        assert row["at_the_limit"]["hits"] / row["at_the_limit"]["of"] <= 0.05
        if "found" in row:
            assert row["found"]["hits"] / row["found"]["of"] >= 0.95
        if row["time_us"] >= 40 and not row["capped"]:
            assert row["same_at_0.002"]["hits"] / row["same_at_0.002"]["of"] >= 0.95
    assert results["quickness"]["decide_s"] < 0.05
    assert results["quickness"]["changes_of_5000_s"] < 0.2
    mine = results["peers"]["fresh"][against_peers.OURS]
    assert mine["1"]["hits"] == 0


def test_recordings_know_what_is_fresh_and_what_is_capped():
    assert WORKLOADS["h200_fresh triton_gemm_4096"].capped
    assert not WORKLOADS["h200_fresh wmma_100us"].capped
    assert {each.source for each in WORKLOADS.values() if not each.fresh} == {"h200_burst", "h200_percall"}
    assert WORKLOADS["h200_percall fma_100us"].slowed.keys() >= {1.003, 1.05}
    assert WORKLOADS["h200_fresh copy_15us"].kind == "copy"


@pytest.mark.parametrize("ratio", [1.0, 1.02])
def test_a_drawn_evaluation_is_judged_as_its_samples_are(ratio):
    workload = WORKLOADS["h200_fresh wmma_100us"]
    slowed = [
        pair.model_copy(
            update={
                "rounds": tuple(
                    Round(base=each.base, head=tuple(value * ratio for value in each.head)) for each in pair.rounds
                )
            }
        )
        for pair in workload.pairs
    ]
    whole = verdict.decide(Comparison(unit="us", allowed_slowdown=0.005, pairs=tuple(slowed)))
    values = workload.values + np.log(ratio)
    drawn = ours.decide([ours._pair(value, workload.time_us) for value in values], allowed=0.005)
    assert drawn is whole.verdict
    assert drawn is (Verdict.SAME if ratio == 1.0 else Verdict.SLOWER)


def test_no_hit_in_three_thousand_is_under_one_in_a_thousand():
    assert 0.00099 < limits.upper(0, 3000) < 0.001
    assert limits.lower(3000, 3000) > 0.999
    assert limits.upper(150, 3000) > 0.05 > limits.lower(150, 3000)


def given(ratio, *, within=1.0, processes=8):
    runs = [Round(base=CALM, head=tuple(value * ratio * within for value in CALM)) for _ in range(processes)]
    wobble = [100.0 + 0.05 * (place % 3) for place in range(peers.HISTORY)]
    return peers.Given(runs=runs, before=wobble, after=[value * ratio for value in wobble[: peers.AFTER]])


@pytest.mark.parametrize("name", [name for name in peers.RULES if "200 %" not in name])
def test_every_rule_finds_a_plain_slowdown_and_none_in_equal_numbers(name):
    assert peers.RULES[name](given(1.1))
    assert not peers.RULES[name](given(1.0))


def test_a_ratio_alarms_beyond_its_threshold_alone():
    shipped = peers.RULES["github-action-benchmark, 200 % as shipped"]
    assert not shipped(given(1.9))
    assert shipped(given(2.1))


def test_lnt_ignores_what_is_under_one_percent():
    assert not peers.RULES["LNT, one process a side"](given(1.009))
    assert peers.RULES["LNT, one process a side"](given(1.02))


def test_a_recording_says_what_was_really_run(tmp_path):
    suite = record.suite_of(DeviceClass.H200, ["compute_40us", "copy_10us"])
    assert [case.title for case in suite.cases] == ["compute_40us", "copy_10us"]
    assert record.bundle(0.0) != record.bundle(0.007)
    assert b"EXTRA_PPM 7000\n" in record.bundle(0.007)["handed_on.cu"]
    with pytest.raises(SystemExit, match="the workloads are compute_5us"):
        record.suite_of(DeviceClass.H200, ["compute_3us"])


def test_what_was_recorded_is_read_back(tmp_path: Path):
    rows = [
        {"workload": "copy_10us", "kind": "copy", "true_work_ratio": ratio, "capped": True, "held_s": 0.5,
         "rounds": [{"base": [10.0, 10.1], "head": [10.2, 10.1]}]}
        for ratio in (1.0, 1.0, 1.007)
    ]  # fmt: skip
    content = {"device": "a card", "unit": "us", "note": "", "comparisons": rows}
    for run in ("some1", "some2"):
        (tmp_path / f"{run}_samples.json.gz").write_bytes(gzip.compress(json.dumps(content).encode()))
    [workload] = recordings.read(tmp_path)
    assert workload.source == "some"
    assert (workload.kind, workload.fresh, workload.capped) == ("copy", True, True)
    assert (len(workload.pairs), len(workload.slowed[1.007])) == (4, 2)
    assert workload.held_s == [0.5] * 6


def test_how_far_runs_of_other_harnesses_are_apart_stands_beside_ours(tmp_path: Path):
    runs = {"do_bench": {"wmma_100us": [100.0, 102.0, 98.0]}, "nvbench": {"compute_40us": [40.0, 40.0, 40.4]}}
    (tmp_path / "some_harnesses.json").write_text(json.dumps({"unit": "us", "runs": runs}))
    found = figures.run_to_run(tmp_path, [WORKLOADS["h200_fresh wmma_100us"]])
    assert [row["workload"] for row in found] == ["wmma_100us", "compute_40us"]
    assert found[0]["do_bench"] == {"runs": 3, "spread": pytest.approx(0.02)}
    assert found[0]["kernelgate"] == pytest.approx(0.00094 / 2**0.5, rel=0.01)
    assert found[1]["kernelgate"] is None
    assert tables.run_to_run(found).splitlines()[2:] == [
        "| wmma_100us | 100 | 2.000 % |  | 0.067 % |",
        "| compute_40us | 40 |  | 0.575 % |  |",
    ]
