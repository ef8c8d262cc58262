import pytest

from verdict.words import percent, ratio_in_words, span_in_words


@pytest.mark.parametrize(
    ("ratio", "interval", "words"),
    [
        (0.9852, (0.9845, 0.9859), "1.5 % faster"),
        (1.614, (1.609, 1.619), "61 % slower"),
        (1.12, None, "12 % slower"),
        (0.9936, None, "0.6 % faster"),
        (1.0, None, "the same"),
        (1.0002, (0.9994, 1.0010), "the same"),
        (1.02346, (1.0234, 1.0235), "2.35 % slower"),
        (3.2, (2.0, 5.0), "220 % slower"),
        (None, None, "unknown"),
        (float("nan"), None, "unknown"),
    ],
)
def test_a_ratio_is_said_with_the_digits_that_its_interval_supports(ratio, interval, words):
    assert ratio_in_words(ratio, interval) == words


def test_an_interval_is_said_with_its_ends_rounded_outwards():
    assert span_in_words(0.9981, 1.0069) == "0.2 % faster to 0.7 % slower"
    assert span_in_words(1.031, 1.084) == "3 to 9 % slower"
    assert span_in_words(1.0, 1.0) == "0.000 to 0.000 % slower"


@pytest.mark.parametrize(("fraction", "words"), [(0.005, "0.5 %"), (0.0123, "1.2 %"), (0.61, "61 %"), (0.01, "1 %")])
def test_a_fraction_is_said_in_two_digits(fraction, words):
    assert percent(fraction) == words
