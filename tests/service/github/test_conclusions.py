from typing import Any

import pytest

from contract.gate import GateAnswer, GateConclusion
from service.github.conclusions import Standing, decide
from service.github.plans import Fault, Hold

HOLD = Hold(subject="suite", kernel="hgemm", digest="0" * 64, said="the suite is edited")
FAULT = Fault(path="kernels/hgemm/suite.toml", said="it can't be read")


def answer(conclusion: GateConclusion, *, proven: bool = True) -> GateAnswer:
    sentence = "said" if proven else "not proven: said"
    return GateAnswer(conclusion=conclusion, sentence=sentence, proven=proven, pending=1, rows=())


_SUCCESS = answer(GateConclusion.SUCCESS)
_FAILURE = answer(GateConclusion.FAILURE)
_MISSING = answer(GateConclusion.NOT_MEASURED)
_PENDING = answer(GateConclusion.PENDING)


@pytest.mark.parametrize(
    ("standing", "conclusion"),
    [
        ({"answer": None}, "success"),
        ({"answer": _SUCCESS}, "success"),
        ({"answer": answer(GateConclusion.SUCCESS, proven=False)}, "success"),
        ({"answer": _FAILURE}, "failure"),
        ({"answer": _MISSING}, "timed_out"),
        ({"answer": answer(GateConclusion.CANCELLED)}, "cancelled"),
        ({"answer": _PENDING, "starved": ("h200",)}, "timed_out"),
        ({"ended": "superseded by 0123", "answer": _FAILURE}, "cancelled"),
        ({"broken": "GitHub is away", "planned": False}, "timed_out"),
        ({"faults": (FAULT,), "unapproved": True}, "failure"),
        ({"unapproved": True, "answer": _MISSING}, "action_required"),
        ({"holds": (HOLD,), "answer": _SUCCESS}, "action_required"),
        ({"holds": (HOLD,), "answer": None}, "action_required"),
        ({"holds": (HOLD,), "answer": _FAILURE}, "failure"),
        ({"holds": (HOLD,), "answer": _MISSING}, "timed_out"),
    ],
)
def test_each_standing_has_its_conclusion(standing: dict[str, Any], conclusion: str) -> None:
    decision = decide(Standing(**standing))
    assert (decision.status, decision.conclusion) == ("completed", conclusion)
    assert decision.sentence


@pytest.mark.parametrize(
    ("standing", "status"),
    [
        ({"planned": False}, "queued"),
        ({"answer": _PENDING}, "queued"),
        ({"answer": _PENDING, "started": True}, "in_progress"),
        ({"answer": _PENDING, "started": True, "holds": (HOLD,)}, "in_progress"),
    ],
)
def test_what_is_to_come_has_no_conclusion(standing: dict[str, Any], status: str) -> None:
    decision = decide(Standing(**standing))
    assert (decision.status, decision.conclusion) == (status, None)


def test_the_class_that_nobody_serves_is_named() -> None:
    assert "class h200" in decide(Standing(answer=_PENDING, starved=("h200",))).sentence
