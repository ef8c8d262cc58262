"""Items 12 to 15 and 43: results that were there before the call."""

from __future__ import annotations

import pytest

from tests.cheats.conftest import Judged


@pytest.mark.parametrize("entry", ["caches_by_pointer", "copies_the_first_result", "packs_weights_once"])
def test_12_14_15_what_was_kept_from_an_earlier_call_is_wrong_for_this_one(judged: Judged, entry: str) -> None:
    assert judged(entry, measure=False).reason == "wrong_values"


@pytest.mark.parametrize("entry", ["caches_in_files", "looks_for_symmetry"])
def test_13_43_no_timed_call_has_inputs_like_those_of_another(judged: Judged, entry: str) -> None:
    """Both would return 77 where they knew the inputs; verification has one call twice, to see whether it varies."""
    assert judged(entry, verify=False, max_processes=2).done.failure is None
    twice = judged(entry, measure=False)
    assert twice.reason == "returned_error"
    assert twice.done.failure is not None
    assert "returned 77" in twice.done.failure.message


def test_13_files_do_not_outlive_a_process_in_the_sandbox(judged: Judged) -> None:
    assert judged("leaves_files", measure=False, seen=()).done.failure is None
    assert judged("leaves_files", verify=False, max_processes=2, seen=()).done.failure is None
