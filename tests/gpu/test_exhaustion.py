"""Whatever a submission takes of the card, its job ends with its fault, and the next one finds the card as it was."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from contract.outcomes import OUTCOME_OF, Outcome, Reason
from contract.report import Report
from tests.gpu.test_cheats import device_class
from tests.worker.jobs import bundles, job, settings, suite
from worker import node
from worker.pipeline import evaluate
from worker.sandbox import NoSandbox, choose

pytestmark = pytest.mark.gpu

MANIFEST = 'label = "v1"\nsummary = "A product"\nlanguage = "cuda"\nsource = "kernel.cu"\n'
SOURCE = """
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "kernelgate.h"

__global__ void product(const __half* a, const __half* b, __half* c, int n, int k) {
  const int row = blockIdx.y, column = blockIdx.x * blockDim.x + threadIdx.x;
  if (column >= n) return;
  /* first */
  float sum = 0;
  for (int i = 0; i < k; ++i) sum += __half2float(a[row * k + i]) * __half2float(b[i * n + column]);
  c[row * n + column] = __float2half(sum);
}
extern "C" int kernelgate_run(const kg_call* call) {
  const int m = kg_param_value(call, "m"), n = kg_param_value(call, "n"), k = kg_param_value(call, "k");
  product<<<dim3((n + 63) / 64, m), 64, 0, static_cast<cudaStream_t>(call->stream)>>>(
      static_cast<const __half*>(call->in[0].data), static_cast<const __half*>(call->in[1].data),
      static_cast<__half*>(call->out[0].data), n, k);
  return cudaGetLastError();
}
/* beside */
"""
ENDLESS = SOURCE.replace("/* first */", "for (volatile int i = 0; i == 0;) {}")
GREEDY = SOURCE.replace(
    "/* beside */",
    'extern "C" size_t kernelgate_workspace_bytes(const kg_call*) {\n'
    "  void* kept;\n"
    "  for (size_t size = size_t{1} << 34; size >= size_t{1} << 16; size /= 2)\n"
    "    while (cudaMalloc(&kept, size) == cudaSuccess) {}\n"
    "  return 0;\n}",
)


def run(tmp_path: Path, source: str) -> Report:
    head = {"kernel.toml": MANIFEST.encode(), "kernel.cu": source.encode()}
    where = settings(
        tmp_path,
        device_class=device_class(),
        judge=("-m", "worker.judge"),
        recorder=("-m", "worker.record"),
        max_processes=1,
        call_limit_s=5.0,
    )
    sandbox = choose(where)
    return evaluate(
        job(head, device_class=device_class(), suite=suite("fp16", 256, sanitize=())),
        bundles(head),
        settings=where,
        on_progress=lambda _: None,
        cancelled=lambda: False,
        sandbox=sandbox if sandbox.isolates else NoSandbox(),
    )


def test_an_endless_kernel_and_one_that_takes_all_memory_end_and_an_honest_one_is_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    device_class()  # this process has a context from here on
    monkeypatch.setattr(node, "_least_used", {})
    assert node.free_gpu()[1] is None
    for source, outcome, reasons in (
        (ENDLESS, Outcome.INCORRECT, {Reason.TIMED_OUT}),
        (GREEDY, Outcome.BUILD_FAILED, {Reason.NOT_RECORDABLE}),
    ):
        began = time.monotonic()
        failure = run(tmp_path, source).failure
        assert failure is not None
        assert failure.reason in reasons, failure
        assert OUTCOME_OF[failure.reason] is outcome
        assert failure.message
        assert time.monotonic() - began < 120
        gpu, problem = node.free_gpu()
        assert gpu is not None
        assert problem is None
    assert run(tmp_path, SOURCE).failure is None
