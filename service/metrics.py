"""Metrics whose names mean something to the service."""

BASELINE_PREFIX = "baseline_"
THROUGHPUT = "throughput"
OVER_BASELINE = "throughput_over_baseline"
FLOPS_PER_BYTE = "flops_per_byte"
