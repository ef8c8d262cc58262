"""A profile on the command line: asked for, shown, compared."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

from rich.console import Console
from typer.testing import CliRunner

from cli.main import app
from cli.series import Chosen
from cli.show.evaluation import evaluation_view
from cli.show.profile import profile_comparison, profile_table
from cli.show.series import series_view
from contract.api import BaseRef, CaseComparison, CompareOut
from contract.devices import DeviceClass
from contract.outcomes import Stage
from contract.profile import PROFILE
from contract.report import CaseResult, LeftOut, Metric
from tests.cli.stub import Stub, evaluation, revision
from tests.cli.test_reading import KERNEL, POINT, SERIES

CASE = "m=4096,n=4096,k=4096"
VALUES = dict(zip(PROFILE, (71.25, 24.9, 12.5, 33.0, 0.5, 2.25, 0.0), strict=True))
runner = CliRunner()


def shown(*parts: object) -> list[str]:
    text = io.StringIO()
    Console(width=160, file=text).print(*parts, sep="\n")
    return [" ".join(line.split()) for line in text.getvalue().splitlines() if line.strip()]


def profiled(case: str = CASE, **values: float) -> CaseResult:
    metrics = (Metric(name=name, unit=PROFILE[name].unit, value=value) for name, value in values.items())
    return CaseResult(case=case, metrics=tuple(metrics))


def compared(base: dict[str, float], head: dict[str, float]) -> CompareOut:
    case = CaseComparison(
        case=CASE,
        verdict=None,
        ratio=None,
        interval=None,
        smallest_detectable=None,
        measured="separately",
        base=base,
        head=head,
    )
    return CompareOut(
        project="local",
        kernel="hgemm",
        device_class=DeviceClass.H200,
        base=BaseRef(id="rev_3", label="v3", digest=None),
        head=BaseRef(id="rev_4", label="v4", digest=None),
        evaluation=None,
        cases=(case,),
    )


def test_submit_asks_for_it_and_waits_for_the_evaluation_that_has_it(stub: Stub, kernel: Path) -> None:
    stub.routes |= {
        "POST /revisions": revision(evaluations=("ev_2", "ev_1")),
        "GET /evaluations/ev_2": evaluation(id="ev_2"),
        "GET /evaluations/ev_1": evaluation(id="ev_1", profile=True, device_class=DeviceClass.H200),
    }
    result = runner.invoke(app, ["submit", str(kernel / "v4"), "--profile", "--wait", "--json"])
    assert result.exit_code == 0, result.output
    assert [one["id"] for one in json.loads(result.stdout)] == ["ev_1"]
    [sent] = stub.asked("POST /revisions")
    assert json.loads(sent.content)["profile"]


def test_an_evaluation_shows_the_counters_of_its_cases() -> None:
    one = evaluation(cases=(profiled(**VALUES), profiled("m=64,n=64,k=64")))
    lines = shown(evaluation_view(one))
    assert "4096^3 71.25 24.90 12.50 33.00 0.5000 2.250 0" in lines
    assert any(line.startswith("case tensor pipe % occupancy % DRAM % L2 %") for line in lines)


def test_without_counters_nothing_is_shown_and_why_stands_with_its_stage() -> None:
    assert profile_table(evaluation().cases) == []
    why = "this node does not permit its counters to be read (ERR_NVGPUCTRPERM)"
    lines = shown(evaluation_view(evaluation(left_out=(LeftOut(stage=Stage.PROFILE, why=why),))))
    assert f"profile left out: {why}" in lines


def test_two_revisions_stand_below_each_other_where_one_was_profiled() -> None:
    both = shown(*profile_comparison(compared(VALUES, VALUES | {"tensor_pipe_utilisation": 82.5})))
    assert [line.split()[:3] for line in both[-2:]] == [["4096^3", "v3", "71.25"], ["4096^3", "v4", "82.50"]]
    one = shown(*profile_comparison(compared({"time": 3.0}, VALUES)))
    assert one[-1].split()[:2] == ["4096^3", "v4"]
    assert profile_comparison(compared({"time": 3.0}, {"time": 2.0})) == []


def test_the_web_view_knows_the_same_counters_by_the_same_words() -> None:
    source = (Path(__file__).parents[2] / "web/src/pages/revision/counters.ts").read_text()
    assert re.findall(r'^  \["([a-z0-9_]+)", "([^"]+)"\],$', source, re.MULTILINE) == [
        (name, shown.words) for name, shown in PROFILE.items()
    ]


def history(metric: str, unit: str) -> list[str]:
    """With summaries that are longer than the line."""
    points = (POINT.model_copy(update={"summary": "word " * 60}),)
    series = SERIES.model_copy(update={"metric": metric, "unit": unit, "points": points, "baseline": None})
    return shown(series_view(Chosen(series=series, kernel=KERNEL)))


def test_a_history_is_headed_by_the_counters_words_and_a_long_summary_takes_no_room_from_them() -> None:
    rest = "of baseline against time ratio verdict outcome summary"
    assert history("tensor_pipe_utilisation", "%")[1] == f"revision commit tensor pipe (%) {rest}"
    assert history("time", "us")[1] == f"revision commit time (us) {rest}"
