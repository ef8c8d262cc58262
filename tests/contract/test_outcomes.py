from contract.outcomes import OUTCOME_OF, SUCCESSORS, Outcome, Reason, State


def test_every_reason_leads_to_one_outcome_that_is_not_success() -> None:
    assert set(OUTCOME_OF) == set(Reason)
    assert not {Outcome.PASSED, Outcome.BUILT} & set(OUTCOME_OF.values())


def test_an_end_has_no_successor() -> None:
    assert set(SUCCESSORS) == set(State)
    assert not SUCCESSORS[State.FINISHED]
    assert not SUCCESSORS[State.CANCELLED]
