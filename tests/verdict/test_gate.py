"""What the gate concludes, and the sentence that says why."""

import pytest

from contract.devices import DeviceClass
from contract.gate import Acceptance, Anchored, GateConclusion, GateSubject, RowStatus
from contract.outcomes import Outcome, Reason, State, Verdict
from tests.verdict.gated import (
    BIG,
    FASTER,
    NOTHING,
    SAME,
    SLOWER,
    THIN,
    UNSURE,
    ask,
    case,
    evaluation,
    judged,
    statuses,
    suite,
)
from verdict.gate import gate


def test_a_change_that_touches_no_kernel_is_a_success():
    answer = gate([])
    assert answer.conclusion is GateConclusion.SUCCESS
    assert answer.proven
    assert answer.sentence == "no kernel is touched: nothing to judge"


def test_a_kernel_that_is_touched_and_of_which_nothing_was_judged_is_no_success():
    answer = ask()
    assert answer.conclusion is GateConclusion.NOT_MEASURED
    assert answer.sentence == "hgemm: touched, and nothing was judged"


def test_a_good_change_is_a_success_that_says_how_much_was_compared():
    answer = ask(evaluation(suite(), case(BIG, FASTER), case(THIN, SAME)))
    assert answer.conclusion is GateConclusion.SUCCESS
    assert answer.proven
    assert answer.sentence == "hgemm on h200: nothing is slower than allowed (0.5 %) in 2 comparisons"


def test_an_improvement_never_fails():
    answer = ask(evaluation(suite(), case(BIG, FASTER), case(THIN, FASTER)))
    assert answer.conclusion is GateConclusion.SUCCESS


def test_one_slower_case_fails_and_is_named():
    answer = ask(evaluation(suite(), case(BIG, SLOWER), case(THIN, SAME), outcome=Outcome.SLOWER))
    assert answer.conclusion is GateConclusion.FAILURE
    assert answer.sentence == "hgemm v4 on h200 at 4096^3: 2.3 % slower (allowed 0.5 %)"
    assert statuses(answer) == [RowStatus.BAD, RowStatus.GOOD]
    assert answer.rows[0].interval == SLOWER.interval


def test_the_worst_case_comes_first_and_the_others_are_counted():
    worse = judged(Verdict.SLOWER, 1.61)
    answer = ask(
        evaluation(suite(), case(BIG, SLOWER), case(THIN, worse), outcome=Outcome.SLOWER),
        evaluation(suite(), device_class="rtx4090d"),
    )
    assert answer.sentence == f"hgemm v4 on h200 at {THIN}: 61.0 % slower (allowed 0.5 %), and 1 more"


def test_slower_on_a_class_that_is_not_required_fails_too():
    of = suite(policy={"required_device_classes": ["h200"], "missing": "pass"})
    slow = evaluation(of, case(BIG, SLOWER), case(THIN, SAME), device_class="rtx4090d", outcome=Outcome.SLOWER)
    assert ask(evaluation(of), slow, of=of).conclusion is GateConclusion.FAILURE


@pytest.mark.parametrize("outcome", [Outcome.INCORRECT, Outcome.BUILD_FAILED, Outcome.UNTRUSTED])
def test_what_is_wrong_fails_with_its_own_sentence(outcome):
    answer = ask(evaluation(suite(), outcome=outcome, summary="wrong values at m=64"))
    assert answer.conclusion is GateConclusion.FAILURE
    assert answer.sentence == "hgemm v4 on h200: wrong values at m=64"


def test_an_allowance_of_the_suite_forgives_its_case_over_its_base_alone():
    allowance = {"revision": "v4", "base": "v3", "case": THIN, "device_class": "h200", "reason": "few steps of k"}
    of = suite(allowances=[allowance])
    answer = ask(evaluation(of, case(BIG, SAME), case(THIN, SLOWER)), of=of)
    assert answer.conclusion is GateConclusion.SUCCESS
    assert [row.tolerated for row in answer.rows if row.status is RowStatus.TOLERATED] == [
        "allowed here by the suite: few steps of k"
    ]
    assert answer.rows[0].verdict is Verdict.SLOWER
    assert answer.sentence.endswith("in 2 comparisons, but for 1 that is accepted")
    other_base = evaluation(of, case(BIG, SAME), case(THIN, SLOWER), base="v2", outcome=Outcome.SLOWER)
    assert ask(other_base, of=of).conclusion is GateConclusion.FAILURE


def test_an_acceptance_forgives_and_names_who():
    yes = Acceptance(device_class="h200", case=BIG, who="ada", reason="more important elsewhere")
    slow = evaluation(suite(), case(BIG, SLOWER), case(THIN, SAME), outcome=Outcome.SLOWER)
    answer = ask(slow, acceptances=(yes,))
    assert answer.conclusion is GateConclusion.SUCCESS
    assert answer.rows[0].tolerated == "accepted by ada: more important elsewhere"
    elsewhere = yes.model_copy(update={"device_class": DeviceClass.B300})
    assert ask(slow, acceptances=(elsewhere,)).conclusion is GateConclusion.FAILURE


@pytest.mark.parametrize(("policy", "conclusion"), [("pass", GateConclusion.SUCCESS), ("fail", GateConclusion.FAILURE)])
def test_inconclusive_does_what_the_policy_says_and_is_never_called_proven(policy, conclusion):
    of = suite(policy={"inconclusive": policy})
    answer = ask(evaluation(of, case(BIG, SAME), case(THIN, UNSURE), outcome=Outcome.INCONCLUSIVE), of=of)
    assert answer.conclusion is conclusion
    assert not answer.proven
    assert answer.sentence.startswith("not proven: hgemm v4 on h200 at") is (policy == "pass")


def test_a_class_that_is_required_and_was_not_asked_holds_the_merge_back():
    of = suite(policy={"required_device_classes": ["h200", "rtx4090d"]})
    answer = ask(evaluation(of), of=of)
    assert answer.conclusion is GateConclusion.NOT_MEASURED
    assert answer.sentence == "hgemm on rtx4090d: required, and nothing was measured there"


@pytest.mark.parametrize("outcome", [Outcome.INFRASTRUCTURE_ERROR, Outcome.BUILT])
@pytest.mark.parametrize("missing", ["pass", "fail"])
def test_what_was_not_measured_on_a_required_class_never_passes(outcome, missing):
    of = suite(policy={"required_device_classes": ["h200"], "missing": missing})
    fine = evaluation(of, device_class="rtx4090d")
    assert ask(evaluation(of, outcome=outcome), fine, of=of).conclusion is GateConclusion.NOT_MEASURED


def test_elsewhere_a_missing_measurement_does_what_the_policy_says():
    for missing, conclusion in (("fail", GateConclusion.NOT_MEASURED), ("pass", GateConclusion.SUCCESS)):
        of = suite(policy={"missing": missing})
        failed = evaluation(of, outcome=Outcome.INFRASTRUCTURE_ERROR, device_class="rtx4090d")
        answer = ask(evaluation(of), failed, of=of)
        assert answer.conclusion is conclusion
        assert not answer.proven


def test_nothing_measured_anywhere_is_no_success_though_every_class_may_miss():
    of = suite(policy={"missing": "pass"})
    answer = ask(evaluation(of, outcome=Outcome.INFRASTRUCTURE_ERROR), of=of)
    assert answer.conclusion is GateConclusion.NOT_MEASURED
    unjudged = evaluation(of, case(BIG, NOTHING), case(THIN, NOTHING), outcome=Outcome.INCONCLUSIVE)
    assert ask(unjudged, of=of).conclusion is GateConclusion.NOT_MEASURED


def test_compiling_is_enough_only_where_the_policy_says_so():
    of = suite(device_classes=["b300", "h200"], policy={"build_only_device_classes": ["b300"]})
    built = evaluation(of, outcome=Outcome.BUILT, device_class="b300")
    assert ask(built, of=of).conclusion is GateConclusion.SUCCESS
    assert ask(built, of=of).sentence == "hgemm on b300: compiled; the suite asks for no more on this class"
    assert ask(evaluation(suite(), outcome=Outcome.BUILT)).conclusion is GateConclusion.NOT_MEASURED


def test_a_case_that_only_the_base_supports_fails():
    answer = ask(evaluation(suite(), case(BIG, SAME), case(THIN, skipped="k = 64 is not a multiple of 128")))
    assert answer.conclusion is GateConclusion.FAILURE
    assert "left out, which v3 supports (k = 64 is not a multiple of 128)" in answer.sentence


def test_a_case_that_neither_supports_or_only_the_head_is_fine():
    neither = case(THIN, skipped="k", base_skipped="k")
    assert ask(evaluation(suite(), case(BIG, SAME), neither)).conclusion is GateConclusion.SUCCESS
    new = case(THIN, base_skipped="k")
    assert ask(evaluation(suite(), case(BIG, SAME), new)).conclusion is GateConclusion.SUCCESS


@pytest.mark.parametrize("base", ["v3", None])
def test_where_every_case_is_left_out_nothing_was_judged(base):
    skipped = {"skipped": "k < 128", "base_skipped": "k < 128" if base else None}
    answer = ask(evaluation(suite(), case(BIG, **skipped), case(THIN, **skipped), base=base))
    assert answer.conclusion is GateConclusion.NOT_MEASURED
    assert answer.sentence == "hgemm v4 on h200: every case is left out, so that nothing was measured"
    one = ask(evaluation(suite(), case(BIG, **skipped), case(THIN, SAME if base else None), base=base))
    assert one.conclusion is GateConclusion.SUCCESS
    assert "left out" not in one.sentence


def test_the_sentence_claims_nothing_of_classes_where_nothing_was_compared():
    of = suite(policy={"build_only_device_classes": ["rtx4090d"]})
    built = evaluation(of, outcome=Outcome.BUILT, device_class="rtx4090d")
    compiled = "hgemm on rtx4090d: compiled; the suite asks for no more on this class"
    assert ask(evaluation(of), built, of=of).sentence == (
        f"hgemm on h200: nothing is slower than allowed (0.5 %) in 2 comparisons; {compiled}"
    )
    first = evaluation(of, case(BIG), case(THIN), base=None)
    assert ask(first, built, of=of).sentence == (
        f"hgemm on h200: right and measured; no base to compare with; {compiled}"
    )


def test_a_case_that_was_not_reported_or_not_compared_is_missing():
    assert ask(evaluation(suite(), case(BIG, SAME))).conclusion is GateConclusion.NOT_MEASURED
    silent = evaluation(suite(), case(BIG, SAME), case(THIN, NOTHING), outcome=Outcome.INCONCLUSIVE)
    assert ask(silent).conclusion is GateConclusion.NOT_MEASURED


def test_a_first_revision_has_nothing_to_be_compared_with():
    answer = ask(evaluation(suite(), case(BIG), case(THIN), base=None))
    assert answer.conclusion is GateConclusion.SUCCESS
    assert answer.sentence == "hgemm on h200: right and measured; no base to compare with"


def test_what_is_to_come_is_waited_for_but_what_is_bad_is_said_at_once():
    waiting = evaluation(suite(), state=State.QUEUED, outcome=None, device_class="rtx4090d")
    answer = ask(evaluation(suite()), waiting)
    assert (answer.conclusion, answer.pending) == (GateConclusion.PENDING, 1)
    slow = evaluation(suite(), case(BIG, SLOWER), case(THIN, SAME), outcome=Outcome.SLOWER)
    answer = ask(slow, waiting)
    assert (answer.conclusion, answer.pending) == (GateConclusion.FAILURE, 1)


def test_superseded_is_cancelled():
    gone = evaluation(suite(), state=State.CANCELLED, outcome=Outcome.CANCELLED, reason=Reason.SUPERSEDED)
    answer = ask(gone)
    assert answer.conclusion is GateConclusion.CANCELLED
    assert answer.sentence == "hgemm v4 on h200: superseded by a newer push"


def test_the_newest_repeat_counts_and_one_that_failed_to_measure_takes_nothing_back():
    slow = evaluation(suite(), case(BIG, SLOWER), case(THIN, SAME), outcome=Outcome.SLOWER)
    better = evaluation(suite(), repeat=2)
    assert ask(slow, better).conclusion is GateConclusion.SUCCESS
    broken = evaluation(suite(), repeat=3, outcome=Outcome.INFRASTRUCTURE_ERROR)
    assert ask(broken, better, slow).conclusion is GateConclusion.SUCCESS
    again = evaluation(suite(), repeat=4, state=State.LEASED, outcome=None)
    assert ask(slow, better, broken, again).conclusion is GateConclusion.PENDING


def chained(ratio, width=0.004, **changes):
    interval = (ratio - width, ratio + width) if ratio else None
    return tuple(
        Anchored(device_class="h200", case=name, ratio=ratio, interval=interval, **changes) for name in (BIG, THIN)
    )


def test_slowdowns_that_are_each_allowed_add_up_against_the_anchor():
    of = suite(policy={"anchor": {"revision": "v1", "allowed_slowdown": 0.02}})
    answer = ask(evaluation(of), of=of, anchored=chained(1.031))
    assert answer.conclusion is GateConclusion.FAILURE
    assert answer.sentence == "hgemm on h200 at 4096^3: 3 % slower than the anchor v1 (2 % allowed in all), and 1 more"
    assert ask(evaluation(of), of=of, anchored=chained(1.015)).conclusion is GateConclusion.SUCCESS
    perhaps = ask(evaluation(of), of=of, anchored=chained(1.022))
    assert (perhaps.conclusion, perhaps.proven) == (GateConclusion.SUCCESS, False)
    gap = ask(evaluation(of), of=of, anchored=chained(None, gap="v2 with v1 was not compared"))
    assert gap.sentence.startswith("not proven: hgemm on h200 at 4096^3: not to be told from the anchor v1: v2 with v1")


def test_a_comparison_with_the_anchor_itself_counts_before_the_chain_and_for_the_anchor_alone():
    of = suite(policy={"anchor": {"revision": "v1", "allowed_slowdown": 0.02}})
    slow = judged(Verdict.SLOWER, 1.012)
    direct = evaluation(of, case(BIG, slow), case(THIN, SAME), base="v1", outcome=Outcome.SLOWER)
    answer = ask(evaluation(of), direct, of=of, anchored=chained(1.05))
    assert answer.conclusion is GateConclusion.SUCCESS
    far = evaluation(of, case(BIG, judged(Verdict.SLOWER, 1.03)), case(THIN, SAME), base="v1", outcome=Outcome.SLOWER)
    assert ask(evaluation(of), far, of=of).conclusion is GateConclusion.FAILURE
    assert ask(direct, of=of).conclusion is GateConclusion.FAILURE


def test_the_narrowest_allowed_slowdown_counts():
    of = suite(
        policy={"allowed_slowdown": 0.005, "allowed_slowdown_on": {"rtx4090d": 0.01}},
        cases=[
            {"dims": {"m": 4096, "n": 4096, "k": 4096}},
            {"dims": {"m": 4096, "n": 4096, "k": 64}, "allowed_slowdown": 0.03, "allowed_slowdown_on": {"h200": 0.04}},
        ],
    )
    allowed = {
        (name, klass): of.allowed_slowdown(name, device_class=DeviceClass(klass))
        for name in (BIG, THIN)
        for klass in ("h200", "rtx4090d")
    }
    assert allowed == {(BIG, "h200"): 0.005, (BIG, "rtx4090d"): 0.01, (THIN, "h200"): 0.04, (THIN, "rtx4090d"): 0.03}


def test_another_suite_says_what_it_would_have_said_of_the_same_intervals():
    old, new = suite(), suite(policy={"allowed_slowdown": 0.05})
    slow = evaluation(old, case(BIG, SLOWER), case(THIN, SAME), outcome=Outcome.SLOWER)
    assert ask(slow, of=old).conclusion is GateConclusion.FAILURE
    assert ask(slow, of=new).conclusion is GateConclusion.SUCCESS
    strict = suite(policy={"allowed_slowdown": 0.0005})
    assert ask(evaluation(old), of=strict).proven is False


def test_two_kernels_are_judged_each_by_its_own_suite():
    other = suite(kernel="sgemm", policy={"inconclusive": "fail"})
    unsure = evaluation(other, case(BIG, UNSURE), case(THIN, SAME), outcome=Outcome.INCONCLUSIVE)
    answer = gate(
        [
            GateSubject(suite=suite(), evaluations=(evaluation(suite()),)),
            GateSubject(suite=other, evaluations=(unsure,)),
        ]
    )
    assert answer.conclusion is GateConclusion.FAILURE
    assert answer.sentence.startswith("sgemm v4 on h200 at 4096^3: inconclusive")


def test_the_same_evaluations_in_any_order_give_the_same_answer():
    one, other = evaluation(suite()), evaluation(suite(), device_class="rtx4090d")
    assert ask(one, other).conclusion is ask(other, one).conclusion
    assert {row.evaluation for row in ask(one, other).rows} == {one.id, other.id}


def test_a_policy_can_not_require_what_it_only_builds():
    with pytest.raises(ValueError, match="h200 can't be both required and build-only"):
        suite(policy={"required_device_classes": ["h200"], "build_only_device_classes": ["h200"]})
    with pytest.raises(ValueError, match="needs at_most or growth"):
        suite(policy={"static_limits": [{"metric": "registers"}]})
