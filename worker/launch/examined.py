"""`python -m worker.launch.examined JOB`: each case called once, for Nsight Compute or compute-sanitizer to look on.

Trusted host code like the launcher's, after everything that is judged and without a judge. Each tensor lies in memory
of its own, so that compute-sanitizer sees what leaves it. JOB is the path of an ExamineJob; ExamineSays lines go to
stdout.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
from cuda.bindings import driver as cuda

from contract.layout import DTYPE_BYTES, Role, SlotLayout, TensorSpec
from contract.record import LaunchRecord
from worker.gpu.channel import private_channel
from worker.gpu.driver import CudaError, check, open_context
from worker.gpu.places import extents, placed_at
from worker.gpu.replay import RecordError, Replay, check_record
from worker.protocol import ExamineCase, Examined, ExamineJob, Examining

_DRAWN = 1 << 20  # elements; larger tensors repeat them
_DTYPES = {"fp16": np.float16, "fp32": np.float32}


def examine(case: ExamineCase, rng: np.random.Generator) -> None:
    """One call, to its end. Raises CudaError, RecordError."""
    record = LaunchRecord.model_validate_json(Path(case.record).read_bytes())
    check_record(record, record.layout)
    addresses: list[Any] = []
    try:
        for _, size in extents(record.layout):
            addresses.append(check(cuda.cuMemAlloc(size)))
        _fill(record.layout, [int(address) for address in addresses], rng)
        images = {digest: Path(path).read_bytes() for digest, path in case.cubins.items()}
        replay = Replay(placed_at(record, [int(address) for address in addresses]), images)
        replay.call()
        replay.close()
    finally:
        for address in addresses:
            cuda.cuMemFree(address)  # fails where the context is lost, and then nothing is left to free


def _fill(layout: SlotLayout, addresses: list[int], rng: np.random.Generator) -> None:
    """Normal inputs; outputs and workspace as they are, for initcheck."""
    offsets = {offset: address for (offset, _), address in zip(extents(layout), addresses, strict=True)}
    for placed in layout.tensors:
        if placed.tensor.role is Role.INPUT:
            _copy(placed.tensor, offsets[placed.offset], rng)


def _copy(tensor: TensorSpec, address: int, rng: np.random.Generator) -> None:
    elements = tensor.bytes // DTYPE_BYTES[tensor.dtype]
    drawn = rng.standard_normal(min(elements, _DRAWN), dtype=np.float32).astype(_DTYPES[tensor.dtype])
    for at in range(0, tensor.bytes, drawn.nbytes):
        check(cuda.cuMemcpyHtoD(address + at, drawn.ctypes.data, min(drawn.nbytes, tensor.bytes - at)))


def main() -> None:
    job = ExamineJob.model_validate_json(Path(sys.argv[1]).read_bytes())
    channel = private_channel()
    os.environ["CUDA_MODULE_LOADING"] = "EAGER"
    open_context()
    rng = np.random.default_rng(job.seed)
    for case in job.cases:
        channel.send(Examining(case=case.case))
        try:
            examine(case, rng)
        except (CudaError, RecordError) as error:
            sys.exit(f"{case.case}: {error}")
    channel.send(Examined())


if __name__ == "__main__":
    main()
