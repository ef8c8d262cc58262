"""A call that beats what its card can do at most did not do its work."""

from contract.devices import DeviceClass
from contract.limits import LIMITS

# Boost clocks can exceed the data sheet's, and what a burst leaves in L2 need not be written within it.
SLACK = 1.15


def roofline_us(device_class: DeviceClass | None, *, flops: float, bytes_moved: float, dtype: str) -> float:
    """No call of this much work can take fewer microseconds; 0 where the class has no limits here."""
    limits = LIMITS.get(device_class) if device_class else None
    if limits is None:
        return 0.0
    return max(flops / limits.flops(dtype), bytes_moved / limits.bytes_per_s) / SLACK * 1e6
