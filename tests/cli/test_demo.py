from __future__ import annotations

from pathlib import Path

import pytest
from rich.console import Console

from cli.demo.plan import plan, provenance
from cli.demo.play import Played
from cli.demo.rows import NARROW, WIDE, Row, row_of, table_of
from cli.errors import CliError, Exit
from contract.devices import DeviceClass
from contract.outcomes import Outcome, Verdict
from contract.statics import FunctionStatics
from tests.cli.conftest import MANIFEST, SUITE
from tests.cli.stub import case_result, evaluation

EVERYTHING = {"cpp": True, "cuda": True, "triton": True}


def add_revision(kernel: Path, name: str, *, language: str) -> None:
    (kernel / name).mkdir(parents=True)
    source = {"cuda": "hgemm.cu", "cpp": "sgemm.cpp"}[language]
    manifest = MANIFEST.replace('"v4"', f'"{name}"').replace('"cuda"', f'"{language}"').replace("hgemm.cu", source)
    (kernel / name / "kernel.toml").write_text(manifest)
    (kernel / name / source).write_text("// nothing\n")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    gpu, cpu = tmp_path / "kernels" / "hgemm", tmp_path / "kernels" / "sgemm_cpu"
    for name in ("v3", "v4"):
        add_revision(gpu, name, language="cuda")
    for name in ("v0", "v1", "demo_slow", "unfinished"):
        add_revision(cpu, name, language="cpp")
    (gpu / "suite.toml").write_text(SUITE)
    own = SUITE.partition("[[allowances]]")[0].replace('"hgemm"', '"sgemm_cpu"').replace('"fp16"', '"fp32"')
    (cpu / "suite.toml").write_text(own.replace('"h200"', '"cpu"').replace('"v3", "v4"', '"v0", "v1"'))
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "h.csv").write_text("# Measured on one card,\n# by hand.\nkernel,device_class\n")
    return tmp_path


def row(outcome: Outcome | None, *, must_fail: bool = False) -> Row:
    return row_of(evaluation(outcome=outcome), must_fail=must_fail)


def test_the_plan_is_read_off_the_folders_and_what_is_measured_comes_first(root: Path) -> None:
    steps = plan(root, compiles=EVERYTHING).steps
    labels = [(step.suite.kernel, step.folder.manifest.label, step.base) for step in steps]
    assert labels == [
        ("sgemm_cpu", "v0", None),
        ("sgemm_cpu", "v1", None),
        ("sgemm_cpu", "demo_slow", "v1"),
        ("hgemm", "v3", None),
        ("hgemm", "v4", None),
    ]
    assert [step.must_fail for step in steps] == [False, False, True, False, False]
    # What needs a card is compiled here, for the architectures that its manifest names.
    assert {step.device_classes for step in steps} == {(DeviceClass.CPU,)}


def test_on_a_card_its_kernels_are_measured_and_no_others(root: Path) -> None:
    steps = plan(root, compiles=EVERYTHING, node=DeviceClass.H200).steps
    assert {(step.suite.kernel, step.device_classes) for step in steps} == {("hgemm", (DeviceClass.H200,))}


def test_what_cannot_be_compiled_here_is_left_out_and_said(root: Path) -> None:
    planned = plan(root, compiles={**EVERYTHING, "cuda": False})
    assert {step.suite.kernel for step in planned.steps} == {"sgemm_cpu"}
    assert planned.left_out[0].startswith("hgemm: there is no compiler for cuda here")


def test_a_folder_without_kernels_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(CliError, match="there are no kernels"):
        plan(tmp_path, compiles=EVERYTHING)


def test_provenance_is_the_comment_that_a_history_begins_with(root: Path) -> None:
    assert provenance(root / "data" / "h.csv") == "Measured on one card, by hand."
    bare = root / "data" / "bare.csv"
    bare.write_text("kernel\n")
    assert provenance(bare) == "bare.csv, carried by the project"


@pytest.mark.parametrize(
    ("rows", "code"),
    [
        ([row(Outcome.PASSED), row(Outcome.BUILT), row(Outcome.INCONCLUSIVE)], Exit.OK),
        ([row(Outcome.PASSED), row(Outcome.INCORRECT, must_fail=True)], Exit.OK),
        ([row(Outcome.PASSED, must_fail=True)], Exit.JUDGED_BAD),
        ([row(Outcome.SLOWER)], Exit.JUDGED_BAD),
        ([row(Outcome.INFRASTRUCTURE_ERROR, must_fail=True)], Exit.NOT_MEASURED),
        ([row(Outcome.CANCELLED), row(Outcome.BUILD_FAILED)], Exit.JUDGED_BAD),
    ],
)
def test_the_demo_succeeds_only_where_what_is_bad_was_caught_and_nothing_else(rows: list[Row], code: Exit) -> None:
    assert Played(tuple(rows)).code is code


@pytest.mark.parametrize("width", [NARROW, WIDE])
def test_the_table_keeps_every_number_at_any_width(width: int) -> None:
    statics = FunctionStatics(
        function="f", architecture="sm_90a", registers=128, spill_store_bytes=8, spill_load_bytes=8
    )
    done = evaluation(
        outcome=Outcome.SLOWER,
        cases=(case_result("m=4096,n=4096,k=4096", Verdict.SLOWER, 1.614),),
        statics=(statics,),
    )
    console = Console(width=width, record=True, file=open("/dev/null", "w"))  # noqa: PTH123, SIM115
    console.print(table_of([row_of(done, must_fail=False)], width=width))
    text = console.export_text()
    console.file.close()
    for shown in (
        "hgemm",
        "v4",
        "h200",
        "slower",
        "312.0",
        "440.5",
        "0.57",
        "v3: 1.6140",
        "▼ 61.4 % slower",
        "128",
        "16",
    ):
        assert shown in text, text
    assert "…" not in text


@pytest.mark.parametrize("width", [NARROW, WIDE])
def test_registers_and_spills_of_several_architectures_stand_side_by_side(width: int) -> None:
    statics = tuple(
        FunctionStatics(
            function=name, architecture=architecture, registers=registers, spill_store_bytes=0, spill_load_bytes=0
        )
        for architecture, registers in (("sm_103a", 168), ("sm_89", 255), ("sm_90a", 128))
        for name in ("f", "g")
    )
    built = row_of(evaluation(outcome=Outcome.BUILT, cases=(), statics=statics), must_fail=False)
    assert (built.registers, built.spilled_bytes) == ((255, 128, 168), (0, 0, 0))
    console = Console(width=width, record=True, file=open("/dev/null", "w"))  # noqa: PTH123, SIM115
    console.print(table_of([built], width=width))
    text = console.export_text()
    console.file.close()
    assert "255/128/168" in text
    assert "0/0/0" not in text
    assert "registers and spills: for sm_89 / sm_90a / sm_103a, or the same for all" in text
