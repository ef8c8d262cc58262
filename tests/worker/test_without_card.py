"""A GPU revision on a node without a card: compiled for every architecture, refused beyond its limits, interpreted."""

from pathlib import Path

import pytest

from contract.bundle import Files
from contract.devices import DeviceClass
from contract.outcomes import OUTCOME_OF, Outcome, Reason, Stage
from contract.report import Report
from contract.suite import Case
from tests.worker.jobs import bundle, bundles, job, settings, suite
from worker.interpreting import MOST_FLOPS, chosen_cases
from worker.operators import OPERATORS
from worker.pipeline import evaluate
from worker.toolchains.nvcc import find_nvcc

EVERYWHERE = 'architectures = ["sm_103a", "sm_89"]\n'
ODD = Case(dims={"m": 17, "n": 33, "k": 40})


def on_cpu(head: Files, tmp_path: Path, base: Files | None = None, **more: object) -> Report:
    """`more`: settings."""
    wanted = job(head, base, suite=suite("fp16", 32, 512, verify_cases=(ODD,)), device_class=DeviceClass.CPU)
    return evaluate(
        wanted,
        bundles(head, base),
        settings=settings(tmp_path, judge=("-m", "worker.judge"), **more),
        on_progress=lambda _: None,
        cancelled=lambda: False,
    )


def why(report: Report) -> dict[Stage, str]:
    return {one.stage: one.why for one in report.left_out}


def test_cuda_is_compiled_for_the_architectures_that_its_manifest_names(tmp_path):
    report = on_cpu(bundle("copy_cuda", manifest=EVERYWHERE), tmp_path)
    assert report.failure is None
    assert report.built_only
    assert [
        (one.architecture, one.static_shared_bytes, one.spill_store_bytes, one.stack_bytes) for one in report.statics
    ] == [
        ("sm_89", 512, 0, 0),
        ("sm_103a", 512, 0, 0),
    ]
    assert all(one.registers for one in report.statics)
    assert list(why(report)) == [Stage.RECORD, Stage.VERIFY, Stage.MEASURE]
    assert why(report)[Stage.VERIFY] == "cuda code runs on a card alone"


def test_without_names_it_is_compiled_for_the_classes_of_the_suite(tmp_path):
    head = bundle("copy_cuda")
    classes = (DeviceClass.RTX4090, DeviceClass.RTX4090D, DeviceClass.CPU)
    wanted = job(head, suite=suite("fp16").model_copy(update={"device_classes": classes}))
    run = settings(tmp_path)
    report = evaluate(wanted, bundles(head), settings=run, on_progress=lambda _: None, cancelled=lambda: False)
    assert {one.architecture for one in report.statics} == {"sm_89"}


def test_with_neither_there_is_nothing_to_compile_for(tmp_path):
    report = on_cpu(bundle("copy_cuda"), tmp_path)
    assert report.failure.reason is Reason.ARCHITECTURE_UNSUPPORTED
    assert "names no architectures" in report.failure.message


def test_a_card_of_another_architecture_than_those_named_is_refused(tmp_path):
    head = bundle("copy_cuda", manifest=EVERYWHERE)
    wanted = job(head, suite=suite("fp16"), device_class="h200", build_only=True)
    run = settings(tmp_path)
    report = evaluate(wanted, bundles(head), settings=run, on_progress=lambda _: None, cancelled=lambda: False)
    assert report.failure.reason is Reason.ARCHITECTURE_UNSUPPORTED
    assert report.failure.message == "h200 is sm_90a; v1's architectures are sm_103a, sm_89"


def test_the_base_is_built_beside_the_head_by_the_same_toolchain(tmp_path):
    base = bundle("copy_cuda", manifest='architectures = ["sm_89"]\n')
    wider = base["kernel.cu"].decode().replace("tile[256]", "tile[512]")
    head = bundle("copy_cuda", manifest=EVERYWHERE, kernel_cu=wider)
    report = on_cpu(head, tmp_path, base)
    assert report.failure is None
    assert [(one.architecture, one.static_shared_bytes) for one in report.statics] == [
        ("sm_89", 1024),
        ("sm_103a", 1024),
    ]
    assert [(one.architecture, one.static_shared_bytes) for one in report.base_statics] == [("sm_89", 512)]
    # Functions of one source go by one name, whatever folder it is compiled in.
    assert {one.function for one in report.base_statics} == {one.function for one in report.statics}
    assert Stage.INSPECT not in why(report)


def test_another_toolchain_builds_the_base_again(tmp_path):
    head, base = (bundle("copy_cuda", manifest=f'architectures = ["sm_89"]\nflags = ["-DN={n}"]\n') for n in (1, 2))
    real = find_nvcc(None)
    newer = real.version.rsplit(".", 1)[0] + ".999"
    nvcc = tmp_path / "nvcc"
    nvcc.write_text(f'#!/bin/sh\n[ "$*" = --version ] && echo "release, V{newer}" || exec {real.path} "$@"\n')
    nvcc.chmod(0o755)

    def builds() -> int:
        return len(list((tmp_path / "cache/build").iterdir()))

    on_cpu(base, tmp_path)
    assert builds() == 1
    same = on_cpu(head, tmp_path, base)
    assert builds() == 2  # the base was there
    other = on_cpu(head, tmp_path, base, nvcc=str(nvcc))
    assert builds() == 4
    assert [one.environment.toolchain["nvcc"] for one in (same, other)] == [real.version, newer]
    assert same.base_statics == other.base_statics != ()


def test_a_base_that_does_not_build_is_left_out_and_no_fault_of_the_head(tmp_path):
    base = bundle("copy_cuda", manifest=EVERYWHERE, kernel_cu="int kernelgate_run(")
    report = on_cpu(bundle("copy_cuda", manifest=EVERYWHERE), tmp_path, base)
    assert report.failure is None
    assert report.statics
    assert report.base_statics == ()
    assert "the base's machine code is not compared (compile_error): " in why(report)[Stage.INSPECT]


def test_a_revision_against_itself_is_built_once(tmp_path):
    head = bundle("copy_cuda", manifest=EVERYWHERE)
    report = on_cpu(head, tmp_path, head)
    assert report.failure is None
    assert report.base_statics == report.statics != ()


def test_more_than_one_of_the_architectures_has_is_refused_with_function_need_and_limit(tmp_path):
    large = bundle("copy_cuda")["kernel.cu"].decode().replace("tile[256]", "tile[256000]")
    report = on_cpu(bundle("copy_cuda", manifest=EVERYWHERE, kernel_cu=large), tmp_path)
    assert report.failure.reason is Reason.ARCHITECTURE_UNSUPPORTED
    assert OUTCOME_OF[report.failure.reason] is Outcome.BUILD_FAILED
    assert "copy" in report.failure.message
    assert "needs 512000 bytes of static shared memory; sm_89 has 49152" in report.failure.message


def test_a_compile_error_says_for_which_architecture(tmp_path):
    source = '#if __CUDA_ARCH__ == 890\n#error "not here"\n#endif\n' + bundle("copy_cuda")["kernel.cu"].decode()
    report = on_cpu(bundle("copy_cuda", manifest=EVERYWHERE, kernel_cu=source), tmp_path)
    assert report.failure.reason is Reason.COMPILE_ERROR
    assert report.failure.message.startswith("for sm_89: nvcc ended")


def test_triton_is_compiled_and_verified_by_its_interpreter_on_the_small_cases(tmp_path):
    head = bundle("gemm_triton", manifest='architectures = ["sm_89"]\n')
    report = on_cpu(head, tmp_path)
    assert report.failure is None
    assert report.built_only
    assert [stage.stage for stage in report.stages] == [Stage.BUILD, Stage.INSPECT, Stage.VERIFY]
    assert {check.case for check in report.checks} == {"m=17,n=33,k=40", "m=32,n=32,k=32"}
    assert {check.family for check in report.checks} == set(OPERATORS["gemm"].families)
    assert all(check.passed for check in report.checks)
    assert why(report)[Stage.VERIFY] == ("1 of 3 cases are too large for Triton's interpreter: m=512,n=512,k=512")
    assert Stage.MEASURE in why(report)


@pytest.mark.parametrize(
    ("change", "reason", "words"),
    [
        (("(along < k), other=0.0", "(along < k - 1), other=0.0"), Reason.WRONG_VALUES, "wrong values"),
        (("mask=(rows < m) & (cols < n))", "mask=cols < n)"), Reason.OUT_OF_BOUNDS_WRITE, "past the end of tensor c"),
    ],
)
def test_a_wrong_triton_kernel_is_incorrect_without_a_card_too(tmp_path, change, reason, words):
    source = bundle("gemm_triton")["kernel.py"].decode().replace(*change)
    report = on_cpu(bundle("gemm_triton", manifest='architectures = ["sm_89"]\n', kernel_py=source), tmp_path)
    assert report.failure.reason is reason
    assert OUTCOME_OF[reason] is Outcome.INCORRECT
    assert words in report.failure.message
    assert not report.built_only


def test_a_launcher_that_raises_only_when_run_is_incorrect_with_its_line(tmp_path):
    source = (
        bundle("gemm_triton")["kernel.py"]
        .decode()
        .replace("    assert workspace", "    assert inputs[0].device.type == 'meta', 'no luck'\n    assert workspace")
    )
    report = on_cpu(bundle("gemm_triton", manifest='architectures = ["sm_89"]\n', kernel_py=source), tmp_path)
    assert report.failure.reason is Reason.RETURNED_ERROR
    assert "run raised AssertionError: no luck (kernel.py:" in report.failure.message


def test_what_the_interpreter_lacks_is_left_out_and_no_fault_of_the_revisions(tmp_path):
    assembly = 'tl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r", [total], tl.float32, True, 1)'
    source = bundle("gemm_triton")["kernel.py"].decode().replace("total.to(", f"{assembly}.to(")
    report = on_cpu(bundle("gemm_triton", manifest='architectures = ["sm_89"]\n', kernel_py=source), tmp_path)
    assert report.failure is None
    assert report.built_only
    assert report.checks == ()
    assert "inline_asm not supported in interpreter mode" in why(report)[Stage.VERIFY]


def test_where_no_case_is_small_nothing_is_interpreted():
    big = suite("fp16", 4096)
    assert OPERATORS["gemm"].flops(big.cases[0].dims) > MOST_FLOPS
    chosen = chosen_cases(big, {})
    assert chosen.suite is None
    assert chosen.why.startswith("1 of 1 cases are too large")


def test_the_smallest_cases_are_chosen_and_those_that_the_revision_refuses_are_not():
    every = suite("fp16", 16, 32, 64, verify_cases=(ODD,))
    chosen = chosen_cases(every, {"m=32,n=32,k=32": "not mine"})
    assert [case.id for case in chosen.suite.cases] == ["m=16,n=16,k=16", ODD.id, "m=64,n=64,k=64"]
    assert chosen.suite.verify_cases == ()
    assert chosen.why is None


def test_only_a_build_is_said_to_leave_out_the_rest(tmp_path):
    head = bundle("copy_cuda")
    wanted = job(head, suite=suite("fp16"), device_class="b300", build_only=True)
    run = settings(tmp_path)
    report = evaluate(wanted, bundles(head), settings=run, on_progress=lambda _: None, cancelled=lambda: False)
    assert why(report) == dict.fromkeys((Stage.RECORD, Stage.VERIFY, Stage.MEASURE), "only a build was asked for")
