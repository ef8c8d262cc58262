"""What a card can do at most, from the vendors' data sheets."""

from __future__ import annotations

from dataclasses import dataclass

from contract.devices import DeviceClass


@dataclass(frozen=True)
class Limits:
    """Dense tensor-core FLOP/s with fp16 inputs (the faster accumulator), the same with TF32, memory bytes/s.

    fp32 is bounded by TF32, whose products can be combined into fp32 ones: faster than the plain fp32 units.
    """

    fp16_flops: float
    tf32_flops: float
    bytes_per_s: float

    def flops(self, dtype: str) -> float:
        return self.fp16_flops if dtype == "fp16" else self.tf32_flops


LIMITS: dict[DeviceClass, Limits] = {
    # NVIDIA H200 Tensor Core GPU data sheet (SXM): 1979 and 989 TFLOPS with sparsity, 4.8 TB/s.
    DeviceClass.H200: Limits(fp16_flops=989.5e12, tf32_flops=494.7e12, bytes_per_s=4.8e12),
    # NVIDIA Ada GPU architecture white paper, appendix A: fp16 with fp16 accumulation 330.3, TF32 82.6, 1008 GB/s.
    DeviceClass.RTX4090: Limits(fp16_flops=330.3e12, tf32_flops=82.6e12, bytes_per_s=1.008e12),
    # The same processor with 114 of 128 multiprocessors, same boost clock and memory.
    DeviceClass.RTX4090D: Limits(fp16_flops=294.2e12, tf32_flops=73.5e12, bytes_per_s=1.008e12),
    # NVIDIA HGX B300 data sheet, an eighth of eight GPUs: 36 and 18 PFLOPS with sparsity, 8 TB/s.
    DeviceClass.B300: Limits(fp16_flops=2.5e15, tf32_flops=1.25e15, bytes_per_s=8.0e12),
}
