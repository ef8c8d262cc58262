"""Suites, judgements and evaluations that the gate's tests ask about."""

from datetime import UTC, datetime
from itertools import count

from contract.api import BaseRef, EvaluationOut
from contract.gate import GateSubject
from contract.outcomes import Outcome, State, Verdict
from contract.report import CaseResult
from contract.suite import Suite
from contract.verdicts import Judgement
from verdict.gate import gate

BIG, THIN = "m=4096,n=4096,k=4096", "m=4096,n=4096,k=64"
_numbers = count(1)


def suite(**changes):
    policy = changes.pop("policy", {})
    return Suite.model_validate(
        {
            "kernel": "hgemm",
            "operator": "gemm",
            "dtype": "fp16",
            "device_classes": ["h200", "rtx4090d"],
            "cases": [
                {"dims": {"m": 4096, "n": 4096, "k": 4096}, "title": "4096^3"},
                {"dims": {"m": 4096, "n": 4096, "k": 64}},
            ],
            "policy": policy,
            **changes,
        }
    )


def judged(verdict, ratio=1.0, width=0.001, **changes):
    interval = None if ratio is None else (ratio - width, ratio + width)
    values = {"verdict": verdict, "ratio": ratio, "interval": interval, "smallest_detectable": 0.006, "reason": "so"}
    return Judgement(**{**values, **changes})


SAME = judged(Verdict.SAME)
SLOWER = judged(Verdict.SLOWER, 1.023)
FASTER = judged(Verdict.FASTER, 0.76)
UNSURE = judged(Verdict.INCONCLUSIVE, 1.004, 0.004)
NOTHING = judged(Verdict.INCONCLUSIVE, None, reason="it was not compared with the base")


def case(name, judgement=None, **changes):
    return CaseResult(case=name, judgement=judgement, **changes)


def evaluation(of, *cases, outcome=Outcome.PASSED, device_class="h200", label="v4", base="v3", **changes):
    number = next(_numbers)
    moment = datetime(2026, 12, 1, 0, 0, number % 60, tzinfo=UTC)
    values = {
        "id": f"ev_{number:04}",
        "project": "local",
        "kernel": of.kernel,
        "revision": BaseRef(id=f"rev_{label}", label=label, digest=None),
        "base": BaseRef(id=f"rev_{base}", label=base, digest=None) if base else None,
        "device_class": device_class,
        "suite_digest": of.digest,
        "protocol_version": 1,
        "repeat": 1,
        "build_only": False,
        "state": State.FINISHED,
        "outcome": outcome,
        "reason": None,
        "message": None,
        "summary": None,
        "stage": None,
        "progress": None,
        "created_at": moment,
        "leased_at": None,
        "finished_at": None,
        "attempts": (),
        "stages": (),
        "environment": None,
        "statics": (),
        "checks": (),
        "cases": cases or (case(BIG, SAME), case(THIN, SAME)),
    }
    return EvaluationOut(**{**values, **changes})


def ask(*evaluations, of=None, **changes):
    return gate([GateSubject(suite=of or suite(), evaluations=evaluations, **changes)])


def statuses(answer):
    return [row.status for row in answer.rows]
