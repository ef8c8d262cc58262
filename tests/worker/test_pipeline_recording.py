"""The GPU classes' way through the pipeline, with stand-ins for recorder and judge and no GPU."""

from pathlib import Path

import pytest

from contract.outcomes import Reason, Stage
from contract.report import Report
from tests.worker.jobs import FAKE_RECORDER, bundle, bundles, job, settings, sha256, suite
from tests.worker.test_own_operators import OPERATOR
from tests.worker.test_own_operators import suite as own_suite
from worker import node
from worker.pipeline import evaluate

pytestmark = pytest.mark.usefixtures("_an_h200")


def run(tmp_path: Path, cubin: Path, plot: str = "fine", *, name: str = "copy_triton", base=None, **more) -> Report:
    head = bundle(name)
    return evaluate(
        job(head, base, device_class="h200", suite=suite("fp16"), **more),
        bundles(head, base),
        settings=settings(tmp_path, recorder=(FAKE_RECORDER, plot, str(cubin)), record_limit_s=3.0),
        on_progress=lambda _: None,
        cancelled=lambda: False,
    )


@pytest.mark.parametrize("name", ["copy_triton", "copy_cuda"])
def test_a_revision_is_recorded_once_and_found_the_next_time(tmp_path, cubin, name):
    first, second = (run(tmp_path, cubin, name=name) for _ in range(2))
    assert first.failure is None
    stages = [(stage.stage, stage.cached) for stage in first.stages]
    assert stages[:3] == [(Stage.BUILD, False), (Stage.RECORD, False), (Stage.INSPECT, False)]
    assert [(stage.stage, stage.cached) for stage in second.stages[:2]] == [(Stage.BUILD, True), (Stage.RECORD, True)]
    assert second.artifact_digest == first.artifact_digest
    assert len(list((tmp_path / "cache" / "record").iterdir())) == 2


def test_another_driver_records_anew(tmp_path, cubin, monkeypatch):
    run(tmp_path, cubin)
    monkeypatch.setattr(node, "known_gpu", lambda: (node.Gpu(name="NVIDIA H200", uuid="GPU-0", driver="590"), None))
    assert not run(tmp_path, cubin).stages[1].cached


def test_operators_of_one_name_share_records_only_where_their_tensors_are_the_same(tmp_path, cubin):
    other_tensors = OPERATOR.replace('"bias": ("columns",)', '"bias": ("columns", 1)')
    other_answer = OPERATOR.replace("return 2 * x + bias", "return 3 * x + bias")
    assert len({OPERATOR, other_tensors, other_answer}) == 3
    cached = []
    for operator in (OPERATOR, other_tensors, other_answer):
        head = bundle("copy_triton")
        report = evaluate(
            job(head, device_class="h200", suite=own_suite(operator, dtype="fp16"), kernel="biased"),
            bundles(head),
            settings=settings(tmp_path, recorder=(FAKE_RECORDER, "fine", str(cubin)), own_operators=("local",)),
            on_progress=lambda _: None,
            cancelled=lambda: False,
        )
        assert report.failure is None
        cached.append(report.stages[1].cached)
    assert cached == [False, False, True]


def test_statics_count_the_dynamic_shared_memory_of_the_launches(tmp_path, cubin):
    (function,) = run(tmp_path, cubin).statics
    assert (function.function, function.architecture) == ("spilled", "sm_90a")
    assert (function.static_shared_bytes, function.dynamic_shared_bytes, function.shared_bytes) == (0, 4096, 4096)
    assert function.instructions.local_store > 0
    assert function.registers == 64
    assert function.spill_store_bytes > 0


@pytest.mark.parametrize(
    ("plot", "reason", "words"),
    [
        ("crash", Reason.CRASHED, "by signal 11"),
        ("exit", Reason.CRASHED, "with 0"),
        ("hang", Reason.TIMED_OUT, "had not returned after 3 s"),
        ("returned", Reason.RETURNED_ERROR, "returned 7"),
        ("excuse", Reason.CRASHED, "not my fault"),
        ("no memory", Reason.CRASHED, "not my fault"),
        ("no card", Reason.CRASHED, "not my fault"),
        ("forged", Reason.NOT_RECORDABLE, "isn't in the built code"),
        ("overlap", Reason.NOT_RECORDABLE, "of another case"),
        ("link", Reason.NOT_RECORDABLE, "can't be read"),
        ("pipe", Reason.NOT_RECORDABLE, "can't be read"),
        ("endless", Reason.NOT_RECORDABLE, "can't be read: Input should be"),
        ("hoard", Reason.NOT_RECORDABLE, "17179869184 bytes of global variables"),
        ("overlaid", Reason.NOT_RECORDABLE, "can't be read: Input should be greater than or equal to 0"),
        ("huge", Reason.NOT_RECORDABLE, "or too large"),
    ],
)
def test_host_code_that_misbehaves_is_named_with_its_case(tmp_path, cubin, plot, reason, words):
    failure = run(tmp_path, cubin, plot).failure
    assert (failure.reason, failure.stage, failure.case) == (reason, Stage.RECORD, "m=16,n=16,k=16")
    assert words in failure.message


def test_a_recorder_that_fails_before_any_host_code_ran_is_the_nodes_fault(tmp_path, cubin):
    failure = run(tmp_path, cubin, "broken").failure
    assert failure.reason is Reason.INTERNAL_ERROR
    assert "no CUDA here" in failure.message


def test_a_recorder_that_does_not_end_is_not_waited_for(tmp_path, cubin):
    assert run(tmp_path, cubin, "linger").failure is None


def test_a_cu_may_launch_nothing_but_what_was_built_from_it(tmp_path, cubin):
    failure = run(tmp_path, cubin, "decoy", name="copy_cuda").failure
    assert failure.reason is Reason.NOT_RECORDABLE
    assert sha256(cubin.read_bytes()) not in failure.message


def test_a_base_that_can_not_be_recorded_is_no_fault_of_the_head(tmp_path, cubin):
    assert run(tmp_path, cubin).failure is None
    base = bundle("copy_triton", manifest="# another bundle\n")
    failure = run(tmp_path, cubin, "crash", base=base).failure
    assert failure.reason is Reason.BASE_FAILED
    assert "v0" in failure.message


def test_no_gpu_is_an_infrastructure_error(tmp_path, cubin, monkeypatch):
    monkeypatch.setattr(node, "known_gpu", lambda: (None, "NVML did not answer within 20 s"))
    failure = run(tmp_path, cubin).failure
    assert (failure.reason, failure.message) == (Reason.DEVICE_UNHEALTHY, "NVML did not answer within 20 s")
