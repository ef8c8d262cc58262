"""One case recorded twice, at different addresses, and made into a launch record."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from contract.layout import TensorSpec, lay_out
from contract.outcomes import Reason
from contract.record import Launch, LaunchRecord
from worker.gpu.driver import is_device_address
from worker.protocol import RecordCase, Recorded
from worker.record.capture import capture
from worker.record.raw import RefusedError
from worker.record.relocate import relocate
from worker.record.source import Source, scratch_windows

MAX_WORKSPACE_BYTES = 1 << 40


def record_case(source: Source, case: RecordCase, tensors: tuple[TensorSpec, ...], out_dir: Path) -> Recorded:
    """Writes the LaunchRecord to `out_dir`. Raises RefusedError where the call can't be recorded or relocated."""
    workspace_bytes = source.workspace_bytes(tensors, case.dims)
    if not 0 <= workspace_bytes <= MAX_WORKSPACE_BYTES:
        raise RefusedError(Reason.NOT_RECORDABLE, f"a workspace of {workspace_bytes} bytes is asked for")
    layout = lay_out(tensors, workspace_bytes=workspace_bytes)
    windows = scratch_windows(layout, source.allocate)
    source.warm_up(layout, windows[0], case.dims)
    first, second = (
        capture(source.stream, partial(source.call, layout, window, case.dims), source.find_cubin) for window in windows
    )
    nodes = relocate(first, second, windows=windows, is_address=is_device_address)
    if not nodes:
        raise RefusedError(Reason.NOT_RECORDABLE, "the call launches nothing on its stream")
    record = LaunchRecord(case=case.case, layout=layout, nodes=nodes)
    path = out_dir / f"{case.case}.json"
    path.write_text(record.model_dump_json())
    digests = sorted({node.cubin for node in nodes if isinstance(node, Launch)})
    return Recorded(
        case=case.case,
        record=str(path),
        cubins={digest: source.cubin_path(digest, out_dir) for digest in digests},
    )
