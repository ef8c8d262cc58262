"""Launch a cubin's kernel and check what it wrote: `nvidia-smi` passing proves nothing.

usage: python -m cli.doctor.probes.kernel CUBIN
"""

from __future__ import annotations

import ctypes
import sys
import time

import numpy as np
from cuda.bindings import driver as cuda

from worker.gpu.driver import CudaError, check, open_context

THREADS = 64


def run(cubin: str) -> float:
    """Microseconds from launch to completion, as the host sees them; raises CudaError."""
    open_context()
    function = check(cuda.cuModuleGetFunction(check(cuda.cuModuleLoad(cubin.encode())), b"probe"))
    got = np.zeros(THREADS, dtype=np.int32)
    memory = check(cuda.cuMemAlloc(got.nbytes))
    started = time.perf_counter()
    check(cuda.cuLaunchKernel(function, 1, 1, 1, THREADS, 1, 1, 0, 0, ((int(memory),), (ctypes.c_void_p,)), 0))
    check(cuda.cuCtxSynchronize())
    elapsed_us = (time.perf_counter() - started) * 1e6
    check(cuda.cuMemcpyDtoH(got.ctypes.data, memory, got.nbytes))
    if not np.array_equal(got, 3 * np.arange(THREADS) + 1):
        sys.exit(f"the kernel wrote {got[:4]}…")
    return elapsed_us


if __name__ == "__main__":
    try:
        print(f"{run(sys.argv[1]):.0f}")
    except CudaError as error:
        sys.exit(str(error))
