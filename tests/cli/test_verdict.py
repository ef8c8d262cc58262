"""`kernelgate verdict`: the decision alone, on samples from anywhere."""

import json

import pytest
from typer.testing import CliRunner

from cli.main import app

QUIET = (0.0004, -0.0003, 0.0002, -0.0005, 0.0001, 0.0006, -0.0002, -0.0003)
KEYS = ["verdict", "ratio", "interval", "smallest_detectable", "reason"]


def comparison(slowdown=0.0, *, pairs=8, ids=None, **more):
    made = []
    for place, noise in enumerate(QUIET[:pairs]):
        pair = {
            "rounds": [{"base": [9.0, 9.01], "head": [9.0 * (1 + slowdown + noise), 9.01 * (1 + slowdown + noise)]}]
        }
        made.append(pair | (ids(place) if ids else {}))
    return {"unit": "us", "allowed_slowdown": 0.005, "pairs": made} | more


def judged(text, *arguments):
    result = CliRunner().invoke(app, ["verdict", *(arguments or ("-",))], input=text)
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.output.splitlines()]


def refusal(text):
    result = CliRunner().invoke(app, ["verdict", "-"], input=text)
    assert result.exit_code == 2
    return result.output


def test_one_object_is_one_final_look_and_one_answer():
    [answer] = judged(json.dumps(comparison(0.02)))
    assert list(answer) == KEYS
    assert answer["verdict"] == "slower"
    assert answer["interval"][0] < answer["ratio"] < answer["interval"][1]
    assert 0.005 < answer["smallest_detectable"] < 0.01


def test_lines_are_answered_one_by_one_in_their_order():
    text = "\n".join(json.dumps(comparison(slowdown)) for slowdown in (0.02, 0.0, -0.02))
    assert [answer["verdict"] for answer in judged(text + "\n\n")] == ["slower", "same", "faster"]


def test_a_file_is_read_like_standard_input(tmp_path):
    file = tmp_path / "samples.json"
    file.write_text(json.dumps(comparison(0.02), indent=2))
    assert judged("", str(file))[0]["verdict"] == "slower"


def test_what_is_optional_counts():
    def verdict_of(**more):
        return judged(json.dumps(comparison(0.02, **more)))[0]["verdict"]

    assert verdict_of(better="higher") == "faster"
    assert verdict_of(spread_floor=0.05) == "inconclusive"
    assert verdict_of(pairs=4) == "inconclusive"
    assert verdict_of(look=2, seed=7) == "slower"


def test_the_same_samples_give_the_same_answer():
    text = json.dumps(comparison(0.0052, seed=3))
    assert judged(text) == judged(text)


@pytest.mark.parametrize("kind", [str, int])
def test_pairs_of_the_same_two_processes_are_one_pair(kind):
    shared = comparison(0.02, ids=lambda _: {"base_process": kind(1), "head_process": kind(2)})
    [answer] = judged(json.dumps(shared))
    assert answer["verdict"] == "inconclusive"
    assert answer["reason"].startswith("1 process a side can't tell")
    apart = comparison(0.02, ids=lambda place: {"base_process": kind(place), "head_process": kind(100 + place)})
    assert judged(json.dumps(apart))[0]["verdict"] == "slower"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"pairs": []}, "there are no pairs"),
        ({"pairs": [{"rounds": []}]}, "pair 1 has no rounds"),
        ({"pairs": [{"rounds": [{"base": [], "head": [9.0]}]}]}, "no samples of the base"),
        ({"pairs": [{"rounds": [{"base": [9.0], "head": [float("nan")]}]}]}, "a sample of the head is nan"),
        ({"pairs": [{"rounds": [{"base": [0.0], "head": [9.0]}]}]}, "a sample of the base is 0"),
        ({"pairs": [{"rounds": [{"base": [9.0], "head": [9000.0]}]}]}, "looks like a changed unit"),
    ],
)
def test_samples_that_say_nothing_are_inconclusive_with_the_reason(change, reason):
    [answer] = judged(json.dumps(comparison() | change))
    assert answer["verdict"] == "inconclusive"
    assert reason in answer["reason"]


def test_what_is_no_comparison_is_refused_with_its_line_and_field():
    good = json.dumps(comparison())
    assert "-:2: not JSON" in refusal(f"{good}\n{{\n")
    assert "-:2: allowed_slowdown" in refusal(f"{good}\n{json.dumps(comparison(allowed_slowdown=0))}\n")
    assert "pairs.0.rounds.0.base.0" in refusal(
        json.dumps(comparison() | {"pairs": [{"rounds": [{"base": ["x"], "head": []}]}]})
    )
    assert "it is empty" in refusal("\n")


def test_a_line_that_is_no_comparison_takes_nothing_from_the_others():
    good = json.dumps(comparison(0.02))
    bad = [
        "{",
        "[]",
        '{"unit":"us"',
        json.dumps(comparison(look=4)),
        "\xff",
        json.dumps(comparison(unit="a\u2028b"))[1:],
    ]
    result = CliRunner().invoke(app, ["verdict", "-"], input="\n".join([good, *bad, good]).encode("latin-1"))
    assert result.exit_code == 2
    assert [json.loads(line)["verdict"] for line in result.stdout.splitlines()] == ["slower", "slower"]
    named = [line.split(" ")[1] for line in result.stderr.splitlines() if line.startswith("error: ")]
    assert named == [f"-:{number}:" for number in range(2, 8)]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (json.dumps(comparison()).replace('"unit": "us"', '"unit": "us", "unit": "ms"'), "-:1: unit is given twice"),
        (json.dumps(comparison()).replace("9.01", '"9.01"', 1), "base.1: Input should be a valid number"),
        (json.dumps(comparison()).replace("9.01", "true", 1), "base.1: Input should be a valid number"),
        (json.dumps(comparison(allowed_slowdown="0.005")), "allowed_slowdown: Input should be a valid number"),
        (json.dumps(comparison(spread_floor=float("inf"))), "spread_floor: Input should be a finite number"),
        (json.dumps(comparison(better="Higher")), "better: Input should be 'lower' or 'higher'"),
        (json.dumps(comparison(better_is="lower")), "better_is: Extra inputs are not permitted"),
        (json.dumps(comparison()).replace("9.01", "9" * 5000, 1), "number out of range"),
        ("[" * 100_000, "-:1: not a comparison: nested too deeply"),
        (json.dumps(comparison(), indent=1).replace('"unit"', "unit"), "-:2: not JSON"),
    ],
)
def test_what_json_allows_and_a_comparison_does_not_is_refused(text, said):
    assert said in refusal(text)


def test_files_as_editors_and_other_systems_write_them_are_read():
    one = json.dumps(comparison(0.02))
    assert len(judged("\ufeff" + one + "\r\n" + one + "\r\n")) == 2
    over_lines = json.dumps(comparison(0.02)).replace('{"rounds"', '\n{"rounds"')
    assert len(judged("\n" + over_lines)) == 1
    assert judged(json.dumps(comparison(0.02, unit="a\u2028b"), ensure_ascii=False))[0]["verdict"] == "slower"


def test_a_number_that_no_float_holds_is_named():
    [answer] = judged(json.dumps(comparison()).replace("9.01", "1e400", 1))
    assert answer["reason"] == "pair 1, round 1: a sample of the base is inf"
