"""What the machine code says, against the driver of this machine's card and what it was launched with."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from contract.statics import FunctionStatics
from tests.gpu import harness
from tests.gpu.test_cheats import device_class
from tests.worker.jobs import FIXTURES, bundles, job, settings, suite
from tests.worker.nvdisasm import counts_by_function
from worker.inspect import statics_of_cubin
from worker.pipeline import evaluate
from worker.sandbox import NoSandbox

pytestmark = pytest.mark.gpu

TRITON = harness.FIXTURES / "tuned_gemm.py"
MANIFEST = 'label = "v1"\nsummary = "A tuned product"\nlanguage = "triton"\nsource = "kernel.py"\n'
ENTRY = '\n#include "kernelgate.h"\nextern "C" int kernelgate_run(const kg_call*) { return 0; }\n'


def statics_of(cubins: dict[str, str]) -> dict[str, tuple[FunctionStatics, str]]:
    return {
        statics.function: (statics, path)
        for path in cubins.values()
        for statics in statics_of_cubin(Path(path).read_bytes(), architecture=harness.architecture())
    }


@pytest.mark.parametrize("name", ["spills", "instructions"])
def test_registers_and_memory_are_those_that_the_driver_finds(tmp_path, name):
    source = tmp_path / f"{name}.cu"
    source.write_text((FIXTURES / source.name).read_text() + ENTRY)
    found = statics_of(harness.build(source).cubins)
    assert len(found) >= 2
    for function, (statics, path) in found.items():
        driver = harness.device().xp.RawModule(path=path).get_function(function).attributes
        assert statics.registers == driver["num_regs"], function
        assert statics.static_shared_bytes == driver["shared_size_bytes"], function
        assert statics.stack_bytes == driver["local_size_bytes"], function


def test_what_triton_made_on_this_card_is_counted_as_nvdisasm_counts_it():
    record, said = harness.recorded(TRITON, entry="run", dims={"m": 1024, "n": 1024, "k": 1024})
    found = statics_of(said.cubins)
    for function, (statics, path) in found.items():
        assert statics.instructions is not None
        counted = {name: count for name, count in statics.instructions if count}
        assert counted == counts_by_function(Path(path))[function]
        assert {"mma", "wgmma", "tcgen05_mma"} & set(counted)
    assert {node.function for node in record.nodes} == set(found)


def test_a_report_has_the_instructions_and_the_shared_memory_of_what_was_launched(tmp_path):
    head = {"kernel.toml": MANIFEST.encode(), "kernel.py": TRITON.read_bytes()}
    asked = job(head, head, device_class=device_class(), suite=suite("fp16", 1024))
    run = settings(tmp_path, judge=("-m", "worker.judge"), recorder=("-m", "worker.record"))
    report = evaluate(
        asked, bundles(head), settings=run, on_progress=lambda _: None, cancelled=lambda: False, sandbox=NoSandbox()
    )
    assert report.failure is None
    (function,) = report.statics
    assert function.dynamic_shared_bytes > 0
    assert function.shared_bytes == function.static_shared_bytes + function.dynamic_shared_bytes
    assert function.instructions.barrier > 0
    assert report.base_statics == report.statics
    shutil.rmtree(tmp_path / "work")
