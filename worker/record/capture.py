"""One call under stream capture."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cuda.bindings import driver as cuda

from contract.outcomes import Reason
from worker.gpu.driver import check, error_of
from worker.record.graph import FindCubin, read_graph
from worker.record.raw import RawNode, RefusedError

_FORBIDDEN = "a call may not allocate, synchronise, use another stream without joining it, or read device data"


def capture(stream: Any, call: Callable[[], None], find_cubin: FindCubin) -> list[RawNode]:
    """What `call` launches on `stream`. Raises RefusedError, with what CUDA said where the capture was invalidated.

    `call` raises RefusedError(returned_error) where the submission says that it failed; a capture that broke is the
    better explanation and wins. Global mode: what would break the capture from another thread breaks it too.
    """
    check(cuda.cuStreamBeginCapture(stream, cuda.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_GLOBAL))
    refused: RefusedError | None = None
    try:
        call()
    except RefusedError as error:
        refused = error
    code, graph = cuda.cuStreamEndCapture(stream)
    if int(code) != 0:
        said = f" ({refused})" if refused else ""
        raise RefusedError(Reason.NOT_RECORDABLE, f"{_FORBIDDEN}; CUDA: {error_of(code)}{said}")
    try:
        if refused:
            raise refused
        return read_graph(graph, find_cubin)
    finally:
        check(cuda.cuGraphDestroy(graph))
