import math

import pytest

from contract.outcomes import Verdict
from verdict import published, same_artifact


@pytest.mark.parametrize(
    ("base", "head", "expected"),
    [
        (643.07, 643.07, Verdict.SAME),
        (355.80, 358.08, Verdict.INCONCLUSIVE),
        (724.16, 727.25, Verdict.INCONCLUSIVE),
        (643.07, 578.02, Verdict.SLOWER),
        (404.65, 513.54, Verdict.FASTER),
    ],
)
def test_throughputs_without_samples_are_judged_by_the_margin(base, head, expected):
    judged = published(base, head, better="higher", margin=0.01)
    assert judged.verdict is expected
    assert judged.ratio == pytest.approx(base / head)
    assert judged.interval is judged.smallest_detectable is None


def test_times_without_samples_are_judged_the_other_way_round():
    assert published(0.053, 0.059, better="lower", margin=0.01).verdict is Verdict.SLOWER
    assert published(0.059, 0.053, better="lower", margin=0.01).verdict is Verdict.FASTER


def test_a_wider_margin_takes_the_verdict_back():
    assert published(100.0, 103.0, better="lower", margin=0.05).verdict is Verdict.INCONCLUSIVE


@pytest.mark.parametrize("value", [0.0, -3.0, math.nan, math.inf])
def test_values_that_are_no_positive_numbers_are_not_judged(value):
    for pair in ((value, 1.0), (1.0, value), (value, value)):
        judged = published(*pair, better="lower", margin=0.01)
        assert (judged.verdict, judged.ratio) == (Verdict.INCONCLUSIVE, None)


def test_the_same_machine_code_is_the_same_without_timing():
    assert same_artifact().verdict is Verdict.SAME
