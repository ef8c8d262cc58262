"""A captured CUDA graph read back: which functions with which parameters, which memsets and copies, in which order."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from cuda.bindings import driver as cuda

from contract.names import Digest
from contract.outcomes import Reason
from contract.record import MAX_NODES, Extent
from worker.gpu.driver import check
from worker.record.order import linear_order
from worker.record.raw import RawCopy, RawLaunch, RawMemset, RawNode, RefusedError

_Type = cuda.CUgraphNodeType
_Memory = cuda.CUmemorytype
_Attribute = cuda.CUkernelNodeAttrID
_PARAM_POINTER, _PARAM_SIZE = 1, 2  # CU_LAUNCH_PARAM_BUFFER_POINTER, _SIZE

_REFUSED = {
    _Type.CU_GRAPH_NODE_TYPE_HOST: "calls a host function",
    _Type.CU_GRAPH_NODE_TYPE_GRAPH: "launches a child graph",
    _Type.CU_GRAPH_NODE_TYPE_WAIT_EVENT: "waits for an external event",
    _Type.CU_GRAPH_NODE_TYPE_EVENT_RECORD: "records an external event",
    _Type.CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL: "signals an external semaphore",
    _Type.CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT: "waits for an external semaphore",
    _Type.CU_GRAPH_NODE_TYPE_MEM_ALLOC: "allocates memory",
    _Type.CU_GRAPH_NODE_TYPE_MEM_FREE: "frees memory",
    _Type.CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: "waits for or writes words of memory from the stream",
    _Type.CU_GRAPH_NODE_TYPE_CONDITIONAL: "has a conditional node",
}

# (function handle, its name) -> the digest of the cubin that it comes from; None where it was not built here.
FindCubin = Callable[[Any, str], Digest | None]


def read_graph(graph: Any, find_cubin: FindCubin) -> list[RawNode]:
    """The nodes in one linear order. Raises RefusedError for what is no launch, memset or copy on the device."""
    count = int(check(cuda.cuGraphGetNodes(graph, 0))[1])
    if count == 0:
        raise RefusedError(Reason.NOT_RECORDABLE, "the call launches nothing on its stream")
    if count > MAX_NODES:
        raise RefusedError(Reason.NOT_RECORDABLE, f"the call has {count} nodes; at most {MAX_NODES} are allowed")
    nodes = check(cuda.cuGraphGetNodes(graph, count))[0]
    places = {int(node): place for place, node in enumerate(nodes)}
    edge_count = int(check(cuda.cuGraphGetEdges(graph, 0))[-1])
    edges: list[tuple[int, int]] = []
    if edge_count:
        befores, afters, *_ = check(cuda.cuGraphGetEdges(graph, edge_count))
        edges = [(places[int(a)], places[int(b)]) for a, b in zip(befores, afters, strict=True)]
    read = (_read(nodes[place], find_cubin) for place in linear_order(count, edges))
    return [node for node in read if node is not None]


def _read(node: Any, find_cubin: FindCubin) -> RawNode | None:
    kind = check(cuda.cuGraphNodeGetType(node))
    if kind == _Type.CU_GRAPH_NODE_TYPE_KERNEL:
        return _launch(node, find_cubin)
    if kind == _Type.CU_GRAPH_NODE_TYPE_MEMSET:
        return _memset(node)
    if kind == _Type.CU_GRAPH_NODE_TYPE_MEMCPY:
        return _copy(node)
    if kind == _Type.CU_GRAPH_NODE_TYPE_EMPTY:  # where streams join
        return None
    raise RefusedError(Reason.NOT_RECORDABLE, f"the call {_REFUSED.get(kind, f'has a node of type {kind}')}")


def _launch(node: Any, find_cubin: FindCubin) -> RawLaunch:
    given = check(cuda.cuGraphKernelNodeGetParams(node))
    function = given.func if int(given.func) else check(cuda.cuKernelGetFunction(given.kern))
    name = check(cuda.cuFuncGetName(function)).decode()
    cubin = find_cubin(function, name)
    if cubin is None:
        raise RefusedError(
            Reason.NOT_RECORDABLE, f"the call launches {name}, which its source does not define: it calls a library"
        )
    if check(cuda.cuGraphKernelNodeGetAttribute(node, _Attribute.CU_LAUNCH_ATTRIBUTE_COOPERATIVE)).cooperative:
        raise RefusedError(Reason.NOT_RECORDABLE, f"{name} is launched cooperatively, which a replay does not do")
    fields = _fields(function)
    shared_limit = cuda.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    return RawLaunch(
        function=name,
        cubin=cubin,
        grid=(given.gridDimX, given.gridDimY, given.gridDimZ),
        block=(given.blockDimX, given.blockDimY, given.blockDimZ),
        cluster=_cluster(node),
        shared_bytes=given.sharedMemBytes,
        max_shared_bytes=int(check(cuda.cuFuncGetAttribute(shared_limit, function))),
        parameters=_parameters(given, fields),
        fields=fields,
    )


def _cluster(node: Any) -> Extent:
    value = check(cuda.cuGraphKernelNodeGetAttribute(node, _Attribute.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION))
    cluster = value.clusterDim
    return (cluster.x or 1, cluster.y or 1, cluster.z or 1)


def _fields(function: Any) -> tuple[tuple[int, int], ...]:
    """(offset, bytes) of each parameter."""
    fields: list[tuple[int, int]] = []
    while True:
        result = cuda.cuFuncGetParamInfo(function, len(fields))
        if int(result[0]) != 0:  # past the last parameter
            return tuple(fields)
        fields.append((int(result[1]), int(result[2])))


def _parameters(given: Any, fields: tuple[tuple[int, int], ...]) -> bytes:
    """The parameter buffer, from whichever of its two forms the node holds."""
    size = max((offset + length for offset, length in fields), default=0)
    buffer = bytearray(size)
    if not size:
        return b""
    if int(given.kernelParams):
        pointers = ctypes.cast(int(given.kernelParams), ctypes.POINTER(ctypes.c_void_p))
        for index, (offset, length) in enumerate(fields):
            buffer[offset : offset + length] = ctypes.string_at(pointers[index] or 0, length)
        return bytes(buffer)
    extra = ctypes.cast(int(given.extra), ctypes.POINTER(ctypes.c_void_p))
    found = {extra[at]: extra[at + 1] for at in (0, 2)}
    length = ctypes.c_size_t.from_address(found[_PARAM_SIZE] or 0).value
    content = ctypes.string_at(found[_PARAM_POINTER] or 0, min(length, size))
    buffer[: len(content)] = content
    return bytes(buffer)


def _memset(node: Any) -> RawMemset:
    given = check(cuda.cuGraphMemsetNodeGetParams(node))
    return RawMemset(
        address=int(given.dst),
        value=int(given.value),
        element_bytes=int(given.elementSize),
        width=int(given.width),
        height=int(given.height),
        pitch=int(given.pitch),
    )


def _copy(node: Any) -> RawCopy:
    given = check(cuda.cuGraphMemcpyNodeGetParams(node))
    on_device = {_Memory.CU_MEMORYTYPE_DEVICE, _Memory.CU_MEMORYTYPE_UNIFIED}
    if given.srcMemoryType not in on_device or given.dstMemoryType not in on_device:
        raise RefusedError(Reason.NOT_RECORDABLE, "the call copies between host and device")
    width, rows = int(given.WidthInBytes), max(int(given.Height), 1) * max(int(given.Depth), 1)
    if rows > 1 and (int(given.srcPitch) != width or int(given.dstPitch) != width or int(given.Depth) > 1):
        raise RefusedError(Reason.NOT_RECORDABLE, "the call copies strided rows; a recorded copy is contiguous")
    return RawCopy(
        to_address=int(given.dstDevice) + int(given.dstXInBytes),
        from_address=int(given.srcDevice) + int(given.srcXInBytes),
        bytes=width * rows,
    )
