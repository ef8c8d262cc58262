from __future__ import annotations

from cli.show.stages import stage_lines
from contract.outcomes import Outcome, Stage
from contract.report import LeftOut
from contract.statics import FunctionStatics
from tests.cli.stub import evaluation


def statics(architecture: str, registers: int) -> FunctionStatics:
    spills = {"spill_store_bytes": 0, "spill_load_bytes": 0}
    return FunctionStatics(function="f", architecture=architecture, registers=registers, **spills)


def lines(**changes: object) -> list[str]:
    return [line.plain for line in stage_lines(evaluation(**changes), ())]


def test_what_was_left_out_stands_with_its_stage_and_why() -> None:
    stages = tuple(stage for stage in evaluation().stages if stage.stage is not Stage.MEASURE)
    left_out = (
        LeftOut(stage=Stage.RECORD, why="nothing can be recorded without a card"),
        LeftOut(stage=Stage.VERIFY, why="1 of 2 cases are too large\n\x1b[31m"),
        LeftOut(stage=Stage.MEASURE, why="no card to time triton on"),
    )
    shown = lines(outcome=Outcome.BUILT, stages=stages, left_out=left_out)
    assert [line.split()[0] for line in shown] == ["build", "record", "verify", "verify", "measure"]
    assert shown[1] == "  record    left out: nothing can be recorded without a card"
    assert shown[3] == "  verify    left out: 1 of 2 cases are too large"


def test_each_architecture_has_a_line_with_the_bases_beside_it() -> None:
    shown = lines(
        statics=(statics("sm_103a", 120), statics("sm_89", 128)),
        base_statics=(statics("sm_103a", 120), statics("sm_89", 96)),
    )
    assert shown[0] == "  build     sm_89, sm_103a   2.7 s"
    assert shown[1] == "            sm_89    128 registers, no spills (v3: 96 registers)"
    assert shown[2] == "            sm_103a  120 registers, no spills"


def test_shared_memory_of_launches_that_nobody_knows_is_not_counted_as_none() -> None:
    def build(**sizes: int) -> str:
        return lines(statics=(FunctionStatics(function="f", architecture="sm_90a", **sizes),))[0]

    assert build(static_shared_bytes=1024).endswith(" 1 KiB static shared")
    assert build(static_shared_bytes=1024, dynamic_shared_bytes=2048).endswith(" 3 KiB shared")


def test_one_architecture_stands_in_the_stages_own_line() -> None:
    shown = lines(statics=(statics("sm_90a", 128),))
    assert shown[0] == "  build     sm_90a   2.7 s   128 registers, no spills"
    assert "verify" in shown[1]
