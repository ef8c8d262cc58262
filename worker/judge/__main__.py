"""`python -m worker.judge`: one JudgeJob on stdin, JudgeSays lines on stdout, the last of them JudgeDone.

With --against-itself a base that is the head's own artifact is measured all the same.
"""

from __future__ import annotations

import os
import sys
import traceback
from typing import BinaryIO

from contract.base import Model
from contract.devices import DeviceClass
from contract.outcomes import Reason, Stage
from contract.report import Environment, Failure
from worker.judge.device import Device
from worker.judge.judge import Emit, Judge
from worker.launch.family import adopt_orphans, hide_memory
from worker.protocol import JudgeDone, JudgeJob

_MESSAGE = 4000


def main() -> None:
    answers = _reserved_stdout()

    def emit(message: Model) -> None:
        answers.write(message.model_dump_json().encode() + b"\n")

    try:
        done = _judge(JudgeJob.model_validate_json(sys.stdin.buffer.read()), emit)
    except Exception as error:  # noqa: BLE001 - whatever it is, the pipeline is told
        traceback.print_exc()
        short = f"the judge: {type(error).__name__}: {error}"
        done = JudgeDone(
            failure=Failure(
                reason=Reason.OUT_OF_MEMORY if _is_out_of_memory(error) else Reason.INTERNAL_ERROR,
                stage=Stage.VERIFY,
                message=short[:_MESSAGE],
            ),
            environment=Environment(device="unknown"),
        )
    emit(done)


def _judge(job: JudgeJob, emit: Emit) -> JudgeDone:
    adopt_orphans()
    device: Device
    if job.device_class is DeviceClass.CPU:
        # Beside this process runs host code of the submission.
        hide_memory()
        # The array library's threads spin for a while after each product, on cores that a burst is timed on.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        from worker.judge.device_cpu import CpuDevice  # noqa: PLC0415 - after the environment is set

        device = CpuDevice()
    else:
        from worker.judge.device_cuda import CudaDevice  # noqa: PLC0415 - needs a GPU

        device = CudaDevice()
    return Judge(job, device, emit, against_itself="--against-itself" in sys.argv[1:]).run()


def _is_out_of_memory(error: Exception) -> bool:
    return isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"


def _reserved_stdout() -> BinaryIO:
    """The pipeline's pipe, off descriptor 1: whatever a library prints goes to stderr."""
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    return answers


if __name__ == "__main__":
    main()
