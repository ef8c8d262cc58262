from __future__ import annotations

import pytest

from cli.text import case_name, decimals, duration, file_size, number, ratio_with_interval
from contract.text import clean, one_line


@pytest.mark.parametrize(
    "hostile",
    [
        "\x1b[2Jgone",
        "\x1b]0;title\x07gone",
        "\x1b]8;;http://evil\x1b\\gone",
        "\x9b31mgone",
        "go\x08\x08\x00ne".replace("\x08\x08\x00", "\x00\x7f\x85"),
        "\x1bPq\x1b\\gone",
        "\u202egone\u2066",
        "\x1bcgone",
    ],
)
def test_what_a_terminal_would_obey_is_taken_out(hostile: str) -> None:
    assert clean(hostile) == "gone"


def test_plain_text_with_lines_and_tabs_stays_as_it_is() -> None:
    assert clean("error: a\r\n\tb ä ▲ [red]x[/red]\n") == "error: a\n\tb ä ▲ [red]x[/red]\n"


def test_one_line_is_cut_where_it_is_too_long() -> None:
    assert one_line("a\n b\tc") == "a b c"
    assert one_line("x" * 50, limit=10) == "x" * 9 + "…"


@pytest.mark.parametrize(
    ("value", "low", "high", "shown"),
    [
        (312.04, 311.9, 312.2, "312.0"),
        (11.32, 11.3, 11.34, "11.32"),
        (0.5702, 0.56, 0.58, "0.57"),
        (440512.0, 440000.0, 441000.0, "440512"),
        (1.0, 1.0, 1.0, "1.000"),
        (0.3, 0.1, 2.3, "0.3"),
        (float("inf"), None, None, "inf"),
        (0.0, None, None, "0"),
        (123.456, None, None, "123.5"),
        (0.012345, None, None, "0.01235"),
    ],
)
def test_a_number_has_the_digits_that_its_interval_supports(
    value: float, low: float | None, high: float | None, shown: str
) -> None:
    assert number(value, low, high) == shown


def test_a_ratio_is_shown_with_its_interval_to_the_same_digit() -> None:
    assert ratio_with_interval(1.00021, (0.9994, 1.0010)) == "1.0002 [0.9994, 1.0010]"
    assert ratio_with_interval(1.614, (1.609, 1.619)) == "1.614 [1.609, 1.619]"
    assert ratio_with_interval(1.1, None) == "1.100"
    assert ratio_with_interval(None, None) == ""


def test_an_interval_that_is_infinite_or_empty_does_not_break_the_digits() -> None:
    assert decimals(1.0, 0.5, float("inf")) == 3
    assert decimals(2.0, 2.0, 2.0) == 3


@pytest.mark.parametrize(
    ("case", "name"),
    [
        ("m=1024,n=1024,k=1024", "1024^3"),
        ("m=4096,n=4096,k=64", "4096x4096x64"),
        ("batch=4,heads=32,kv_heads=8,seqlen=512,head_dim=128,causal=1", "b4 h32/8 s512 d128 causal"),
        ("batch=1,heads=64,kv_heads=64,seqlen=1024,head_dim=128,causal=0", "b1 h64 s1024 d128"),
        ("b1-h64-s1024-d128-full", "b1-h64-s1024-d128-full"),
        ("rows=3", "rows=3"),
    ],
)
def test_cases_have_short_names(case: str, name: str) -> None:
    assert case_name(case) == name


def test_durations_and_sizes_have_units_that_fit() -> None:
    assert [duration(x) for x in (0.0042, 2.71, 150.0)] == ["4 ms", "2.7 s", "2.5 min"]
    assert [file_size(x) for x in (512, 9318, 32768, 3 << 20)] == ["512 B", "9.1 KiB", "32 KiB", "3 MiB"]


def test_an_escape_without_an_end_hides_no_other_line() -> None:
    assert clean("one\x1b]0;title\ntwo\nthree") == "one\ntwo\nthree"
    assert "\x1b" not in clean("\x1b]" * 100_000 + "\n\x1bPq")
