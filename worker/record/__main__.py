"""`python -m worker.record`: one RecordJob on stdin, a line of RecorderSays for each event on stdout.

Every case is announced before its host code runs, so that a crash can be laid at its door. The first case that can't
be recorded ends the process: its error is the revision's.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from contract.base import Model
from contract.outcomes import Reason
from contract.report import MAX_MESSAGE
from worker.gpu.channel import private_channel
from worker.gpu.driver import CudaError, open_context
from worker.protocol import RecordFailed, Recording, RecordJob
from worker.record.raw import RefusedError
from worker.record.recorder import record_case
from worker.record.source import Source


def loader_of(language: str) -> Callable[[RecordJob], Source]:
    """What loads a submission's code. Only Triton needs torch, whose import takes seconds."""
    if language == "cuda":
        from worker.record.cuda_source import CudaSource  # noqa: PLC0415

        return lambda job: CudaSource(Path(job.source), job.entry, job.cubins)
    from worker.record.triton_source import TritonSource  # noqa: PLC0415

    return lambda job: TritonSource(Path(job.source), job.entry)


def record(job: RecordJob, load: Callable[[RecordJob], Source], say: Callable[[Model], None]) -> None:
    source: Source | None = None
    for case in job.cases:
        say(Recording(case=case.case))
        try:
            source = source or load(job)
            say(record_case(source, case, case.tensors, Path(job.out_dir)))
        except RefusedError as error:
            say(RecordFailed(case=case.case, reason=error.reason, message=str(error)[:MAX_MESSAGE]))
            return
        except CudaError as error:
            say(RecordFailed(case=case.case, reason=Reason.CRASHED, message=str(error)))
            return


def main() -> None:
    channel = private_channel()
    job = RecordJob.model_validate_json(channel.reader.readline())
    # What fails before a case is announced is the node's fault: no driver, no torch.
    open_context()
    record(job, loader_of(job.language), channel.send)


if __name__ == "__main__":
    main()
