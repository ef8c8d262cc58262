"""What the gate concludes from the machine code."""

import pytest

from contract.gate import GateConclusion, RowStatus
from contract.outcomes import Outcome
from contract.statics import FunctionStatics
from tests.verdict.gated import ask, evaluation, suite


@pytest.mark.parametrize(
    ("limit", "head", "base", "said"),
    [
        ({"metric": "spill_bytes", "at_most": 0}, {"spill_store_bytes": 96, "spill_load_bytes": 32}, {}, "spills: 128"),
        ({"metric": "spill_bytes", "at_most": 0}, {"spill_store_bytes": 0, "spill_load_bytes": 0}, {}, None),
        ({"metric": "registers", "at_most": 128}, {"registers": 168}, {}, "registers: 168, at most 128 allowed"),
        ({"metric": "code_bytes", "growth": 0.1}, {"code_bytes": 1200}, {"code_bytes": 1000}, "20 % more than"),
        ({"metric": "code_bytes", "growth": 0.1}, {"code_bytes": 1100}, {"code_bytes": 1000}, None),
        (
            {"metric": "dynamic_shared_bytes", "at_most": 512},
            {"dynamic_shared_bytes": 1024},
            {},
            "dynamic shared memory",
        ),
        (
            {"metric": "shared_bytes", "at_most": 99},
            {"static_shared_bytes": 60, "dynamic_shared_bytes": 40},
            {},
            "100 bytes",
        ),
        (
            {"metric": "local_load_instructions", "at_most": 0},
            {"instructions": {"local_load": 2}},
            {},
            "load instructions: 2,",
        ),
        ({"metric": "local_load_instructions", "at_most": 0}, {"instructions": {}}, {}, None),
        ({"metric": "spill_store_bytes", "growth": 0.0}, {"spill_store_bytes": 4}, {"spill_store_bytes": 0}, "up from"),
        ({"metric": "registers", "at_most": 8, "device_classes": ["b300"]}, {"registers": 168}, {}, None),
    ],
)
def test_limits_on_the_machine_code(limit, head, base, said):
    of = suite(policy={"static_limits": [limit]})
    statics = {
        "statics": (FunctionStatics(function="hgemm", architecture="sm_90a", **head),),
        "base_statics": (FunctionStatics(function="hgemm", architecture="sm_90a", **base),) if base else (),
    }
    answer = ask(evaluation(of, **statics), of=of)
    assert answer.conclusion is (GateConclusion.FAILURE if said else GateConclusion.SUCCESS)
    assert (said or "nothing is slower") in answer.sentence


def test_a_limit_that_the_machine_code_can_not_be_held_to_is_missing():
    of = suite(policy={"static_limits": [{"metric": "registers", "at_most": 128, "device_classes": ["h200"]}]})
    answer = ask(evaluation(of), of=of)
    assert answer.conclusion is GateConclusion.NOT_MEASURED
    assert answer.sentence == "hgemm v4 on h200: the machine code doesn't say its registers"


def test_growth_over_a_base_whose_machine_code_is_not_known_is_missing():
    of = suite(policy={"static_limits": [{"metric": "code_bytes", "growth": 0.1}]})
    statics = (FunctionStatics(function="hgemm", architecture="sm_90a", code_bytes=1100),)
    answer = ask(evaluation(of, statics=statics), of=of)
    assert answer.conclusion is GateConclusion.NOT_MEASURED
    assert "v3's code by the same toolchain isn't known, so growth can't be told" in answer.sentence
    assert ask(evaluation(of, statics=statics, base=None), of=of).conclusion is GateConclusion.SUCCESS


def test_each_architecture_keeps_a_limit_by_itself():
    limits = [{"metric": "code_bytes", "at_most": 1500, "growth": 0.1}]
    of = suite(policy={"static_limits": limits, "build_only_device_classes": ["h200"]})

    def code(**sizes):
        return tuple(FunctionStatics(function="f", architecture=name, code_bytes=size) for name, size in sizes.items())

    built = {"outcome": Outcome.BUILT, "base_statics": code(sm_89=1000, sm_90a=1000)}
    fits = evaluation(of, statics=code(sm_89=1000, sm_90a=1100), **built)
    assert ask(fits, of=of).conclusion is GateConclusion.SUCCESS
    grown = ask(evaluation(of, statics=code(sm_89=1000, sm_90a=1200), **built), of=of)
    assert [row.said for row in grown.rows if row.status is RowStatus.BAD] == [
        "code: 1200 bytes, 20 % more than the base's 1000 (10 % allowed) on sm_90a"
    ]
    other = ask(evaluation(of, statics=code(sm_89=1000, sm_103a=1000), **built), of=of)
    assert [row.said for row in other.rows if row.status is RowStatus.MISSING] == [
        "v3's code by the same toolchain isn't known, so growth can't be told on sm_103a"
    ]


def test_registers_are_the_largest_functions_and_code_is_summed():
    limits = [{"metric": "registers", "at_most": 130}, {"metric": "code_bytes", "at_most": 1500}]
    of = suite(policy={"static_limits": limits})
    functions = tuple(
        FunctionStatics(function=name, architecture="sm_90a", registers=128, code_bytes=800) for name in ("a", "b")
    )
    answer = ask(evaluation(of, statics=functions), of=of)
    assert [row.said for row in answer.rows if row.status is RowStatus.BAD] == [
        "code: 1600 bytes, at most 1500 allowed"
    ]
