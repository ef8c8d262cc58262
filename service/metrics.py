"""Metrics whose names mean something to the service, and outcomes whose numbers do."""

from contract.outcomes import Outcome

BASELINE_PREFIX = "baseline_"
THROUGHPUT = "throughput"
OVER_BASELINE = "throughput_over_baseline"
FLOPS_PER_BYTE = "flops_per_byte"

# Whose numbers a history may draw.
TRUSTED = frozenset({Outcome.PASSED, Outcome.SLOWER, Outcome.INCONCLUSIVE, Outcome.BUILT})
