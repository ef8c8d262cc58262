"""Launch records replayed: any number of calls, each on a slot of its own, as one linear chain of graph nodes.

NOTES: the chain is captured from one stream rather than built node by node, because capture links the nodes by itself
and copies the parameters when a call is made: one buffer for each node of the record serves every call of a burst.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from cuda.bindings import driver as cuda

from contract.layout import SlotLayout
from contract.names import Digest
from contract.outcomes import Reason
from contract.record import Copy, Launch, LaunchRecord, Memset
from worker.gpu.arena import ARENA_ADDRESS
from worker.gpu.driver import check, new_stream

WORD_BYTES = 8
_PORTABLE_CLUSTER = 8  # blocks; CUDA programming guide, "Thread Block Clusters"
_PARAM_POINTER, _PARAM_SIZE, _PARAM_END = 1, 2, 0  # CU_LAUNCH_PARAM_*

_Attribute = cuda.CUfunction_attribute
_EXTERNAL = int(cuda.CUevent_record_flags.CU_EVENT_RECORD_EXTERNAL)


class RecordError(ValueError):
    """A record that can't be replayed: it comes from the untrusted side, so every offset is checked."""

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason = reason


def check_record(record: LaunchRecord, layout: SlotLayout) -> None:
    """Raise RecordError unless everything that the record names lies inside a slot of `layout`."""
    if record.layout != layout:
        raise RecordError(Reason.NOT_RELOCATABLE, "the record was made for another layout of the case's tensors")
    for place, node in enumerate(record.nodes):
        if any(last > layout.slot_bytes for last in _extents(node)):
            raise RecordError(Reason.NOT_RELOCATABLE, f"node {place} of the record reaches past the slot")
        if isinstance(node, Launch):
            for relocation in node.relocations:
                if relocation.at % WORD_BYTES or relocation.at + WORD_BYTES > len(node.parameters):
                    raise RecordError(Reason.NOT_RELOCATABLE, f"node {place} relocates what is no parameter word")


def _extents(node: Launch | Memset | Copy) -> Iterable[int]:
    """Past the last byte of each place in the slot that the node names."""
    if isinstance(node, Launch):
        return [relocation.slot_offset for relocation in node.relocations]
    if isinstance(node, Memset):
        row = node.width * node.element_bytes
        return [node.slot_offset + (node.height - 1) * max(node.pitch, row) + row]
    return [node.to_offset + node.bytes, node.from_offset + node.bytes]


class Replay:
    """One record. `prepare` loads its modules anew, so device globals start clean; `run` times what is prepared."""

    def __init__(self, record: LaunchRecord, images: Mapping[Digest, bytes]) -> None:
        self._record = record
        needed = {node.cubin for node in record.nodes if isinstance(node, Launch)}
        if needed - images.keys():
            raise RecordError(Reason.NOT_RECORDABLE, "the record names a cubin that is not beside it")
        self._images = {digest: images[digest] for digest in sorted(needed)}
        self._stream = new_stream()
        self._start, self._end, self._before, self._after = (check(cuda.cuEventCreate(0)) for _ in range(4))
        self._watched = False
        self._modules: list[Any] = []
        self._executable: Any = None

    def prepare(self, slots: Iterable[int], *, watched: int | None = None) -> None:
        """`watched`: the place of a call that `watched_us` tells the time of."""
        self.release()
        steps = self._load()
        self._watched = watched is not None
        check(cuda.cuStreamBeginCapture(self._stream, cuda.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED))
        try:
            slot_bytes = self._record.layout.slot_bytes
            for place, slot in enumerate(slots):
                base = ARENA_ADDRESS + slot * slot_bytes
                if place == watched:
                    check(cuda.cuEventRecordWithFlags(self._before, self._stream, _EXTERNAL))
                for step in steps:
                    step(base)
                if place == watched:
                    check(cuda.cuEventRecordWithFlags(self._after, self._stream, _EXTERNAL))
        except BaseException:
            cuda.cuStreamEndCapture(self._stream)
            raise
        graph = check(cuda.cuStreamEndCapture(self._stream))
        try:
            self._executable = check(cuda.cuGraphInstantiate(graph, 0))
        finally:
            check(cuda.cuGraphDestroy(graph))
        check(cuda.cuGraphUpload(self._executable, self._stream))
        check(cuda.cuStreamSynchronize(self._stream))

    def run(self) -> float:
        """Microseconds from before the first call to after the last, by events; each `prepare` runs once."""
        if self._executable is None:
            raise RecordError(Reason.INTERNAL_ERROR, "nothing is prepared: every burst is prepared anew")
        check(cuda.cuEventRecord(self._start, self._stream))
        check(cuda.cuGraphLaunch(self._executable, self._stream))
        check(cuda.cuEventRecord(self._end, self._stream))
        check(cuda.cuStreamSynchronize(self._stream))
        elapsed_us = float(check(cuda.cuEventElapsedTime(self._start, self._end))) * 1e3
        executable, self._executable = self._executable, None
        check(cuda.cuGraphExecDestroy(executable))
        return elapsed_us

    def watched_us(self) -> float | None:
        """Of the watched call of the last run; None where there was none."""
        return float(check(cuda.cuEventElapsedTime(self._before, self._after))) * 1e3 if self._watched else None

    def call(self) -> None:
        """One call on the slot at address 0, to its end, launch by launch: for a tool that looks at each."""
        self.release()
        for step in self._load():
            step(0)
        check(cuda.cuStreamSynchronize(self._stream))

    def close(self) -> None:
        self.release()
        for event in (self._start, self._end, self._before, self._after):
            check(cuda.cuEventDestroy(event))
        check(cuda.cuStreamDestroy(self._stream))

    def release(self) -> None:
        """Unload the modules: their globals take the device's memory."""
        if self._executable is not None:
            executable, self._executable = self._executable, None
            check(cuda.cuGraphExecDestroy(executable))
        while self._modules:
            check(cuda.cuModuleUnload(self._modules.pop()))

    def _load(self) -> list[Callable[[int], None]]:
        modules: dict[Digest, Any] = {}
        for digest, image in self._images.items():
            modules[digest] = check(cuda.cuModuleLoadData(image))
            self._modules.append(modules[digest])
        return [self._step(node, modules) for node in self._record.nodes]

    def _step(self, node: Launch | Memset | Copy, modules: Mapping[Digest, Any]) -> Callable[[int], None]:
        if isinstance(node, Launch):
            return _launch_step(node, modules[node.cubin], self._stream)
        if isinstance(node, Memset):
            return _memset_step(node, self._stream)
        return _copy_step(node, self._stream)


def _launch_step(node: Launch, module: Any, stream: Any) -> Callable[[int], None]:
    function = _function(node, module)
    config = cuda.CUlaunchConfig()
    config.gridDimX, config.gridDimY, config.gridDimZ = node.grid
    config.blockDimX, config.blockDimY, config.blockDimZ = node.block
    config.sharedMemBytes = node.shared_bytes
    config.hStream = stream
    if node.cluster != (1, 1, 1):
        attribute = cuda.CUlaunchAttribute()
        attribute.id = cuda.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
        cluster = attribute.value.clusterDim
        cluster.x, cluster.y, cluster.z = node.cluster
        config.attrs = [attribute]
        config.numAttrs = 1
    size = len(node.parameters)
    words = (ctypes.c_uint64 * (-(-size // WORD_BYTES) or 1))()
    ctypes.memmove(words, node.parameters, size)
    length = ctypes.c_size_t(size)
    # CU_LAUNCH_PARAM_BUFFER: the driver copies the buffer at each call.
    extra = (ctypes.c_void_p * 5)(
        _PARAM_POINTER, ctypes.addressof(words), _PARAM_SIZE, ctypes.addressof(length), _PARAM_END
    )
    extra_address = ctypes.addressof(extra) if size else 0
    relocations = tuple((relocation.at // WORD_BYTES, relocation.slot_offset) for relocation in node.relocations)
    launch = cuda.cuLaunchKernelEx

    def step(base: int, keep: tuple[Any, ...] = (words, length, extra)) -> None:  # noqa: ARG001 - `extra` points there
        for word, offset in relocations:
            words[word] = base + offset
        check(launch(config, function, 0, extra_address))

    return step


def _function(node: Launch, module: Any) -> Any:
    result = cuda.cuModuleGetFunction(module, node.function.encode())
    if int(result[0]) == int(cuda.CUresult.CUDA_ERROR_NOT_FOUND):
        raise RecordError(Reason.NOT_RECORDABLE, f"{node.function} is not in the machine code that was built")
    function = check(result)
    dynamic = _Attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    if node.max_shared_bytes != int(check(cuda.cuFuncGetAttribute(dynamic, function))):
        check(cuda.cuFuncSetAttribute(function, dynamic, node.max_shared_bytes))
    if node.cluster[0] * node.cluster[1] * node.cluster[2] > _PORTABLE_CLUSTER:
        large = _Attribute.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED
        check(cuda.cuFuncSetAttribute(function, large, 1))
    return function


def _memset_step(node: Memset, stream: Any) -> Callable[[int], None]:
    offset, value, width, height, pitch = node.slot_offset, node.value, node.width, node.height, node.pitch
    if height == 1:
        flat = {1: cuda.cuMemsetD8Async, 2: cuda.cuMemsetD16Async, 4: cuda.cuMemsetD32Async}[node.element_bytes]
        return lambda base: check(flat(base + offset, value, width, stream))
    rows = {1: cuda.cuMemsetD2D8Async, 2: cuda.cuMemsetD2D16Async, 4: cuda.cuMemsetD2D32Async}[node.element_bytes]
    return lambda base: check(rows(base + offset, pitch, value, width, height, stream))


def _copy_step(node: Copy, stream: Any) -> Callable[[int], None]:
    return lambda base: check(
        cuda.cuMemcpyDtoDAsync(base + node.to_offset, base + node.from_offset, node.bytes, stream)
    )
