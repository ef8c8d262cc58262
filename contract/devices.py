"""Device classes: what a node may be, and the architecture that code for it is built for."""

from enum import StrEnum


class DeviceClass(StrEnum):
    RTX4090 = "rtx4090"
    RTX4090D = "rtx4090d"
    B300 = "b300"
    H200 = "h200"
    CPU = "cpu"


# nvcc's -gencode code= per class; `a` is the architecture-specific feature set (wgmma, tcgen05).
ARCHITECTURES: dict[DeviceClass, str] = {
    DeviceClass.RTX4090: "sm_89",
    DeviceClass.RTX4090D: "sm_89",
    DeviceClass.B300: "sm_103a",
    DeviceClass.H200: "sm_90a",
}

# What a manifest may name: the architectures of all classes, oldest first.
COMPILED_FOR: tuple[str, ...] = tuple(
    sorted(set(ARCHITECTURES.values()), key=lambda name: int("".join(filter(str.isdigit, name))))
)

# What NVML calls the device, exactly: a 4090 D is not a 4090.
NVML_NAMES: dict[DeviceClass, tuple[str, ...]] = {
    DeviceClass.RTX4090: ("NVIDIA GeForce RTX 4090",),
    DeviceClass.RTX4090D: ("NVIDIA GeForce RTX 4090 D",),
    DeviceClass.B300: ("NVIDIA B300", "NVIDIA B300 SXM6 AC"),
    DeviceClass.H200: ("NVIDIA H200",),
}


def device_class_of(nvml_name: str) -> DeviceClass | None:
    """The class of the GPU that NVML calls `nvml_name`; None where no class is defined for it."""
    return next((klass for klass, names in NVML_NAMES.items() if nvml_name in names), None)
