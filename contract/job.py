"""What a worker gets when its claim wins, and how it reports progress."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from contract.base import Model
from contract.devices import DeviceClass
from contract.names import Digest, KernelName, Label, NodeName, ProjectSlug
from contract.outcomes import Stage
from contract.spreads import Spread
from contract.suite import Suite

# A change of what is measured, or how, starts a new segment of every history.
PROTOCOL_VERSION = 1


class RevisionRef(Model):
    id: str
    label: Label
    digest: Digest


class Job(Model):
    """`build_only`: no card of the class is at hand; the outcome is `built`. `profile`: read its counters too."""

    evaluation_id: str
    lease_token: str
    deadline: datetime
    heartbeat_s: float
    project: ProjectSlug
    kernel: KernelName
    device_class: DeviceClass
    revision: RevisionRef
    base: RevisionRef | None
    suite: Suite
    protocol_version: int
    repeat: int
    build_only: bool = False
    profile: bool = False


class NodeInfo(Model):
    """What a node says of itself with each claim and heartbeat."""

    name: NodeName
    device_class: DeviceClass
    host: str
    device: str
    driver: str | None = None
    healthy: bool = True
    problem: str | None = None
    sandbox: bool = False
    build_only_classes: tuple[DeviceClass, ...] = ()
    spreads: tuple[Spread, ...] = Field(default=(), max_length=400, description="what it has learnt while idle")


class Claim(Model):
    node: NodeInfo


class Progress(Model):
    stage: Stage
    done: int = Field(default=0, ge=0)
    total: int = Field(default=0, ge=0)
    detail: str = Field(default="", max_length=300)
    at: datetime | None = None


class Heartbeat(Model):
    node: NodeInfo
    progress: tuple[Progress, ...] = Field(default=(), max_length=64)


class HeartbeatReply(Model):
    cancel: bool
    deadline: datetime
