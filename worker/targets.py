"""What a revision is built for, and what of an evaluation this node leaves out."""

from __future__ import annotations

from dataclasses import dataclass

from contract.devices import ARCHITECTURES, DeviceClass
from contract.job import Job
from contract.manifest import Manifest
from contract.outcomes import Reason, Stage
from contract.report import LeftOut
from worker.failure import Failed


@dataclass(frozen=True, kw_only=True)
class Target:
    """`architecture`: nvcc's name, None for this machine's CPU. `at_hand`: whether what is built runs here."""

    architecture: str | None
    at_hand: bool


def targets_of(manifest: Manifest, job: Job) -> tuple[Target, ...]:
    """One where the device is at hand, or where a class is built for; else each architecture of the manifest's.

    Raises Failed (architecture_unsupported) where there is none.
    """
    if manifest.language == "cpp":
        if job.device_class != DeviceClass.CPU:
            raise _unsupported(f"a cpp revision can't be built for {job.device_class} (cuda or triton can)")
        return (Target(architecture=None, at_hand=True),)
    if job.device_class != DeviceClass.CPU:
        architecture = ARCHITECTURES[job.device_class]
        if manifest.architectures and architecture not in manifest.architectures:
            named = ", ".join(manifest.architectures)
            raise _unsupported(f"{job.device_class} is {architecture}; {manifest.label}'s architectures are {named}")
        return (Target(architecture=architecture, at_hand=not job.build_only),)
    names = manifest.architectures_for(job.suite.device_classes)
    if not names:
        raise _unsupported(
            f"{manifest.label} names no architectures, and the suite no device class that {manifest.language} is for"
        )
    return tuple(Target(architecture=name, at_hand=False) for name in names)


def left_out(manifest: Manifest, job: Job, *, unverified: str | None) -> tuple[LeftOut, ...]:
    """Of an evaluation that only builds. `unverified`: why it is verified in part or not at all."""
    if job.build_only:
        asked = "only a build was asked for"
        record, verify, measure = asked, asked, asked
    else:
        record = "nothing can be recorded without a card"
        verify = unverified or ""
        measure = f"this node has no card to time {manifest.language} on"
    profile = measure if job.profile else ""
    stages = ((Stage.RECORD, record), (Stage.VERIFY, verify), (Stage.MEASURE, measure), (Stage.PROFILE, profile))
    on_cpu = manifest.language == "cpp"
    return tuple(
        LeftOut(stage=stage, why=why[:1000]) for stage, why in stages if why and not (on_cpu and stage is Stage.RECORD)
    )


def _unsupported(message: str) -> Failed:
    return Failed(Reason.ARCHITECTURE_UNSUPPORTED, Stage.BUILD, message)
