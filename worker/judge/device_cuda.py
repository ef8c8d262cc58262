"""An NVIDIA GPU as a device: CuPy, an arena of shareable device memory, a quiet probe, NVML."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from cuda.bindings import driver as cuda

from contract.devices import device_class_of
from contract.layout import DTYPE_BYTES, Placed, SlotLayout
from contract.report import Environment
from worker.gpu.arena import ARENA_ADDRESS, ArenaWindow, CreatedArena, granularity
from worker.gpu.driver import check, open_context
from worker.gpu.limits import roofline_us
from worker.gpu.nvml import Nvml
from worker.gpu.products import CudaProducts
from worker.operators.base import SCRATCH_BYTES

_KERNELS = Path(__file__).resolve().parent.parent / "gpu" / "judge_kernels.cu"
_DTYPES = {"fp16": "float16", "fp32": "float32"}
_KINDS = {"normal": 0, "uniform": 1}
_FILL_BLOCK, _FILL_STEP_BYTES, _MAX_GRID_Y = 256, 16, 65_535
_REPEATED = {1: 0x0101_0101, 2: 0x0001_0001, 4: 1}  # an element's bits times this fill 32 bits
# An idle GPU answers the probe in about 14 us; one that another process has work on, after a time slice of 2.4 ms.
_QUIET_US = 500.0
# Cards with full-rate float64; elsewhere it is 1/64 of float32 and references are computed in that (TF32 off).
_FAST_FLOAT64 = {(8, 0), (9, 0), (10, 0)}


class CudaArena:
    """Views of the arena as CuPy arrays. Mapped in this process until closed."""

    def __init__(self, created: CreatedArena, cupy: Any) -> None:
        self.fd, self.bytes = created.fd, created.bytes
        self._created = created
        self._cupy = cupy
        self._memory = cupy.cuda.UnownedMemory(ARENA_ADDRESS, created.bytes, created)

    def tensor(self, layout: SlotLayout, placed: Placed, slots: int) -> Any:
        tensor = placed.tensor
        itemsize = DTYPE_BYTES[tensor.dtype]
        strides = (layout.slot_bytes, *(stride * itemsize for stride in tensor.strides))
        return self._view(placed.offset, (slots, *tensor.shape), _DTYPES[tensor.dtype], strides, layout)

    def raw(self, first_byte: int, last_byte: int, layout: SlotLayout, slots: int) -> Any:
        return self._view(first_byte, (slots, last_byte - first_byte), "uint8", (layout.slot_bytes, 1), layout)

    def close(self) -> None:
        self._created.close()

    def _view(
        self, offset: int, shape: tuple[int, ...], dtype: str, strides: tuple[int, ...], layout: SlotLayout
    ) -> Any:
        if shape[0] * layout.slot_bytes > self.bytes:
            raise ValueError(f"{shape[0]} slots of {layout.slot_bytes} bytes do not fit an arena of {self.bytes}")
        pointer = self._cupy.cuda.MemoryPointer(self._memory, offset)
        return self._cupy.ndarray(shape, dtype, pointer, strides)


class CudaDevice:
    """The first GPU that CUDA shows (CUDA_VISIBLE_DEVICES chooses), held by the judge alone.

    Made before anything else takes device memory or imports CuPy: it reserves the arena's address.
    """

    measures_itself = True
    timed_kind = "normal"
    launcher = ("-m", "worker.launch.cuda")
    baseline_device = "cuda"

    def __init__(self) -> None:
        self._device = open_context()
        total = int(check(cuda.cuDeviceTotalMem(self._device)))
        # Checks are arrays' work: the fewer and larger its steps, the less of it is the host's.
        self.scratch_bytes = max(SCRATCH_BYTES, total // 64)
        unit = granularity()
        self._window = ArenaWindow(total // unit * unit)
        os.environ["CUPY_TF32"] = "0"
        import cupy  # noqa: PLC0415 - after the reservation

        self.xp = cupy
        attribute = cuda.CUdevice_attribute
        self.l2_bytes = self._attribute(attribute.CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)
        self._multiprocessors = self._attribute(attribute.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)
        capability = (
            self._attribute(attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
            self._attribute(attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR),
        )
        self.reference_dtype = cupy.float64 if capability in _FAST_FLOAT64 else cupy.float32
        self._uuid = _uuid_text(bytes(check(cuda.cuDeviceGetUuid(self._device)).bytes))
        self._nvml = Nvml(self._uuid)
        self._name = self._nvml.name() or check(cuda.cuDeviceGetName(128, self._device)).rstrip(b"\0").decode()
        self._class = device_class_of(self._name)
        module = cupy.RawModule(code=_KERNELS.read_text(encoding="utf-8"), backend="nvrtc")
        self._module = module
        self._fill = module.get_function("fill")
        self._words = module.get_function("words")
        self._probe = module.get_function("probe")
        self.quiet()  # the first launch loads the kernel

    def arena(self, size: int) -> CudaArena:
        return CudaArena(CreatedArena(self._window, size), self.xp)

    def arena_budget(self) -> int:
        free, _ = check(cuda.cuMemGetInfo())
        return int(free) // 4

    def synchronize(self) -> None:
        self.xp.cuda.runtime.deviceSynchronize()

    def release_scratch(self) -> None:
        self.synchronize()
        self.xp.get_default_memory_pool().free_all_blocks()
        self.xp.get_default_pinned_memory_pool().free_all_blocks()

    def quiet(self) -> bool:
        """One probe: a block of the judge's own waits a time slice while another process has work on the GPU."""
        return self.probe_us() < _QUIET_US

    def probe_us(self) -> float:
        """Microseconds, by this process's clock, until one block has run."""
        self.synchronize()
        started = time.perf_counter()
        self._probe((1,), (1,), ())
        self.synchronize()
        return (time.perf_counter() - started) * 1e6

    def clocks(self) -> dict[str, str | float | bool]:
        return self._nvml.clocks()

    def power_capped(self) -> bool:
        return self._nvml.power_capped()

    def energy_mj(self) -> float | None:
        return self._nvml.energy_mj()

    def random(self, kind: str, out: Any, seeds: Sequence[int]) -> None:
        """See Device.random. Raises ValueError for another kind or dtype, or an array that is strided inside a slot."""
        self._draw(kind, out, seeds, None)

    def as_drawn(self, kind: str, view: Any, seeds: Sequence[int]) -> bool:
        differs = self.xp.zeros(1, self.xp.uint32)
        self._draw(kind, view, seeds, differs)
        return not int(differs[0])

    def _draw(self, kind: str, out: Any, seeds: Sequence[int], differs: Any) -> None:
        if kind not in _KINDS:
            raise ValueError(f"{kind} is not a kind of draw ({', '.join(_KINDS)})")
        if out.dtype.name not in _DTYPES.values() or not _dense(out) or len(seeds) != out.shape[0]:
            raise ValueError("random fills fp16 or fp32 arrays that are dense inside a slot, with a seed for each slot")
        xp, elements = self.xp, math.prod(out.shape[1:])
        if out.size == 0:
            return
        self._fill(
            self._grid(elements * out.itemsize, len(seeds)),
            (_FILL_BLOCK,),
            (
                xp.uint64(out.data.ptr),
                xp.uint64(out.strides[0]),
                xp.uint64(elements),
                xp.asarray(seeds, dtype=xp.uint64),
                xp.uint32(len(seeds)),
                xp.uint32(_KINDS[kind]),
                xp.uint32(out.itemsize == DTYPE_BYTES["fp16"]),
                xp.uint64(0 if differs is None else differs.data.ptr),
            ),
        )

    def set_bits(self, out: Any, bits: int) -> None:
        self._put_words(out, list(range(out.shape[0])), bits, None)

    def has_bits(self, view: Any, slots: Sequence[int], bits: int) -> bool:
        differs = self.xp.zeros(1, self.xp.uint32)
        self._put_words(view, slots, bits, differs)
        return not int(differs[0])

    def _put_words(self, view: Any, slots: Sequence[int], bits: int, differs: Any) -> None:
        if not _dense(view):
            raise ValueError("bits are set in arrays that are dense inside a slot")
        xp, size = self.xp, math.prod(view.shape[1:]) * view.itemsize
        if size == 0 or not slots:
            return
        self._words(
            self._grid(size, len(slots)),
            (_FILL_BLOCK,),
            (
                xp.uint64(view.data.ptr),
                xp.uint64(view.strides[0]),
                xp.uint64(size),
                xp.asarray(slots, dtype=xp.uint32),
                xp.uint32(len(slots)),
                xp.uint32(bits * _REPEATED[view.itemsize]),
                xp.uint64(0 if differs is None else differs.data.ptr),
            ),
        )

    def _grid(self, slot_bytes: int, slots: int) -> tuple[int, int]:
        """Enough blocks to fill the card a few times over; each strides on from there."""
        steps = -(-slot_bytes // _FILL_STEP_BYTES)
        most = max(1, self._multiprocessors * 32 // min(slots, self._multiprocessors))
        return min(-(-steps // _FILL_BLOCK), most), min(slots, _MAX_GRID_Y)

    def products(self, work: Any) -> CudaProducts:
        return CudaProducts(self.xp, self._module, work)

    def roofline_us(self, *, flops: float, bytes_moved: float, dtype: str) -> float:
        return roofline_us(self._class, flops=flops, bytes_moved=bytes_moved, dtype=dtype)

    def environment(self) -> Environment:
        major, minor = divmod(int(check(cuda.cuDriverGetVersion())), 1000)
        return Environment(
            device=self._name,
            device_uuid=self._uuid,
            driver=self._nvml.driver(),
            cuda=f"{major}.{minor // 10}",
            libraries={"cupy": self.xp.__version__, "cuda-bindings": version("cuda-bindings")},
            clocks=self.clocks(),
            host_cores=os.cpu_count(),
        )

    def _attribute(self, attribute: Any) -> int:
        return int(check(cuda.cuDeviceGetAttribute(attribute, self._device)))


def _dense(array: Any) -> bool:
    """Inside each slot, the first axis."""
    shape = array.shape[1:]
    return bool(array.strides[1:] == tuple(math.prod(shape[axis + 1 :]) * array.itemsize for axis in range(len(shape))))


def _uuid_text(raw: bytes) -> str:
    """As NVML writes it: GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx."""
    text = raw.hex()
    return "GPU-" + "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))
