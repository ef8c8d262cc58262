"""Driver calls of cuda.bindings; a failed one raises an error that carries CUDA's own name."""

from __future__ import annotations

from typing import Any

from cuda.bindings import driver as cuda

# After one of these the context is lost: every later call fails with the same error.
STICKY = frozenset(
    {
        "CUDA_ERROR_ILLEGAL_ADDRESS",
        "CUDA_ERROR_ILLEGAL_INSTRUCTION",
        "CUDA_ERROR_MISALIGNED_ADDRESS",
        "CUDA_ERROR_INVALID_ADDRESS_SPACE",
        "CUDA_ERROR_INVALID_PC",
        "CUDA_ERROR_HARDWARE_STACK_ERROR",
        "CUDA_ERROR_ASSERT",
        "CUDA_ERROR_LAUNCH_FAILED",
        "CUDA_ERROR_LAUNCH_TIMEOUT",
        "CUDA_ERROR_ECC_UNCORRECTABLE",
        "CUDA_ERROR_UNKNOWN",
    }
)


class CudaError(RuntimeError):
    """A driver call failed; `name` is CUDA's, for example CUDA_ERROR_ILLEGAL_ADDRESS."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(f"{name}: {text}")
        self.name = name

    @property
    def sticky(self) -> bool:
        return self.name in STICKY


def check(result: tuple[Any, ...]) -> Any:
    """The values of a driver call's result (none, one, or a tuple); raises CudaError."""
    if int(result[0]) != 0:
        raise error_of(result[0])
    if len(result) == 1:
        return None
    return result[1] if len(result) == 2 else result[1:]


def error_of(code: Any) -> CudaError:
    name = cuda.cuGetErrorName(code)[1]
    text = cuda.cuGetErrorString(code)[1]
    return CudaError(name.decode() if name else f"CUDA error {int(code)}", text.decode() if text else "unknown")


def open_context(ordinal: int = 0) -> Any:
    """The primary context of the device, made current: the one that torch, CuPy and the CUDA runtime use too."""
    check(cuda.cuInit(0))
    device = check(cuda.cuDeviceGet(ordinal))
    context = check(cuda.cuDevicePrimaryCtxRetain(device))
    check(cuda.cuCtxSetCurrent(context))
    return device


def new_stream() -> Any:
    return check(cuda.cuStreamCreate(cuda.CUstream_flags.CU_STREAM_NON_BLOCKING))


def disable_persisting_l2() -> None:
    """No line of L2 outlives a call by being set aside; a device without the feature has nothing to disable."""
    for result in (
        cuda.cuCtxResetPersistingL2Cache(),
        cuda.cuCtxSetLimit(cuda.CUlimit.CU_LIMIT_PERSISTING_L2_CACHE_SIZE, 0),
    ):
        if int(result[0]) not in {0, int(cuda.CUresult.CUDA_ERROR_NOT_SUPPORTED)}:
            raise error_of(result[0])


def is_device_address(word: int) -> bool:
    """Whether `word` points into memory that this process has from CUDA: device, managed or registered host memory."""
    attribute = cuda.CUpointer_attribute.CU_POINTER_ATTRIBUTE_MEMORY_TYPE
    return int(cuda.cuPointerGetAttribute(attribute, word)[0]) == 0
