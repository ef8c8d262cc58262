"""The structures of kernelgate.h, for ctypes. Keep in step with worker/toolchains/include/kernelgate.h."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from contract.layout import Role, TensorSpec

_DTYPES = {"fp16": 0, "fp32": 1}
_MAX_RANK = 4


class Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("shape", ctypes.c_int64 * _MAX_RANK),
        ("stride", ctypes.c_int64 * _MAX_RANK),
        ("rank", ctypes.c_int32),
        ("dtype", ctypes.c_int32),
    )


class Param(ctypes.Structure):
    _fields_ = (("name", ctypes.c_char_p), ("value", ctypes.c_int64))


class Call(ctypes.Structure):
    _fields_ = (
        ("inputs", ctypes.POINTER(Tensor)),
        ("outputs", ctypes.POINTER(Tensor)),
        ("params", ctypes.POINTER(Param)),
        ("n_in", ctypes.c_int32),
        ("n_out", ctypes.c_int32),
        ("n_params", ctypes.c_int32),
        ("reserved", ctypes.c_int32),
        ("workspace", ctypes.c_void_p),
        ("workspace_bytes", ctypes.c_size_t),
        ("stream", ctypes.c_void_p),
    )


@dataclass(frozen=True)
class BuiltCall:
    """A call and the arrays that it points to."""

    call: Call
    arrays: tuple[Any, ...]


def build_call(
    tensors: Sequence[tuple[TensorSpec, int]],
    dims: Mapping[str, int],
    *,
    workspace: int = 0,
    workspace_bytes: int = 0,
    stream: int = 0,
) -> BuiltCall:
    """`tensors`: each spec with its address (0: none), in the operator's order."""
    inputs = [_tensor(spec, address) for spec, address in tensors if spec.role is Role.INPUT]
    outputs = [_tensor(spec, address) for spec, address in tensors if spec.role is Role.OUTPUT]
    input_array, output_array = (Tensor * len(inputs))(*inputs), (Tensor * len(outputs))(*outputs)
    param_array = (Param * len(dims))(*(Param(name.encode(), value) for name, value in dims.items()))
    call = Call(
        inputs=input_array,
        outputs=output_array,
        params=param_array,
        n_in=len(inputs),
        n_out=len(outputs),
        n_params=len(dims),
        workspace=workspace or None,
        workspace_bytes=workspace_bytes,
        stream=stream or None,
    )
    return BuiltCall(call=call, arrays=(input_array, output_array, param_array))


def _tensor(spec: TensorSpec, address: int) -> Tensor:
    axes = ctypes.c_int64 * _MAX_RANK
    return Tensor(address or None, axes(*spec.shape), axes(*spec.strides), len(spec.shape), _DTYPES[spec.dtype])
