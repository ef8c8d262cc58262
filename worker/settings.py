"""The one settings object of a worker: environment variables KERNELGATE_*, and plain REDIS_URL."""

from __future__ import annotations

import platform
import re
import tempfile
from pathlib import Path
from typing import Literal

from pydantic import AliasChoices, Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict

from contract.devices import DeviceClass
from contract.names import Digest, NodeName


def _node_name() -> str:
    return re.sub(r"[^A-Za-z0-9_.-]", "-", platform.node())[:63].lstrip("_.-") or "node"


def _cache_dir() -> Path:
    return Path.home() / ".cache" / "kernelgate"


def _shipped_kernels() -> Path | None:
    folder = Path(__file__).parents[1] / "kernels"
    return folder if folder.is_dir() else None


class WorkerSettings(BaseSettings):
    """Times in seconds. Limits are ordered: a stage's < the evaluation's < Celery's soft < its hard < the lease."""

    model_config = SettingsConfigDict(env_prefix="KERNELGATE_", extra="ignore", populate_by_name=True, frozen=True)

    service_url: str = "http://127.0.0.1:8000"
    node_token: SecretStr = SecretStr("")
    node_name: NodeName = Field(default_factory=_node_name)
    device_class: DeviceClass = DeviceClass.CPU
    build_only_classes: tuple[DeviceClass, ...] = Field(
        default=(), description="classes whose code this node compiles without having their card"
    )
    redis_url: str = Field(
        default="redis://127.0.0.1:6379/0", validation_alias=AliasChoices("REDIS_URL", "KERNELGATE_REDIS_URL")
    )

    cache_dir: Path = Field(default_factory=_cache_dir)
    cache_bytes: int = 4 << 30
    work_dir: Path = Field(default_factory=lambda: Path(tempfile.gettempdir()))

    compile_limit_s: float = 300.0
    record_limit_s: float = Field(default=180.0, description="one case, with its compilation and tuning for Triton")
    call_limit_s: float = Field(default=20.0, description="one call of a revision in the judge")
    calls_limit_s: float = Field(default=900.0, description="all calls of a revision in the judge together")
    interpret_limit_s: float = Field(default=180.0, description="one call in Triton's interpreter, without a card")
    sanitize_limit_s: float = Field(default=180.0, description="one tool of compute-sanitizer over the cases it checks")
    profile_limit_s: float = Field(default=180.0, description="Nsight Compute over one case")
    silence_limit_s: float = Field(default=300.0, description="a judge that says nothing for so long is ended")
    evaluation_limit_s: float = 3000.0
    soft_limit_s: int = 3120
    hard_limit_s: int = 3240
    report_limit_s: float = Field(default=600.0, description="how long a report is offered to a service that is away")
    soft_shutdown_s: float = 60.0

    max_processes: int = Field(default=16, ge=1, description="processes a side at the last look")
    compile_memory_bytes: int = 16 << 30

    sandbox: Literal["on", "off"] = Field(
        default="on", description="off: submissions run with this worker's rights, and every result says so"
    )
    sandbox_memory_bytes: int = Field(default=16 << 30, description="one command; at most three quarters of the RAM")
    sandbox_processes: int = Field(default=1024, ge=16, description="processes and threads of one command")
    sandbox_disk_bytes: int = Field(default=4 << 30, description="what a build or a recording may write to disk")
    trusted_bundles: tuple[Digest, ...] = Field(
        default=(), description="digests that run without a sandbox where none works; everything else is refused"
    )
    own_operators: tuple[str, ...] = Field(
        default=(), description="projects whose suites' own operators run here, with this worker's rights; *: all"
    )

    shipped_kernels: Path | None = Field(
        default_factory=_shipped_kernels, description="the folder of the kernels that an idle node measures"
    )
    calibration_s_a_day: float = Field(
        default_factory=lambda data: 0.0 if data.get("device_class") == DeviceClass.CPU else 600.0,
        ge=0,
        description="how long an idle node holds its device to learn its spread floors; a CPU by default not at all",
    )

    gxx: str = "g++"
    nvcc: str | None = Field(default=None, description="by default from PATH, /usr/local/cuda, or the PyPI wheels")
    ncu: str | None = Field(
        default=None, description="Nsight Compute; by default from PATH or where it installs itself"
    )
    compute_sanitizer: str | None = Field(default=None, description="by default from PATH or /usr/local/cuda")
    recorder: tuple[str, ...] = Field(default=("-m", "worker.record"), description="arguments of the interpreter")
    judge: tuple[str, ...] = ("-m", "worker.judge")
    examined: tuple[str, ...] = Field(
        default=("-m", "worker.launch.examined"), description="what NVIDIA's tools look at"
    )

    def runs_operators_of(self, project: str) -> bool:
        return not {project, "*"}.isdisjoint(self.own_operators)

    @property
    def lock_file(self) -> Path:
        """Held for as long as an evaluation runs on this node."""
        return self.cache_dir / f"{self.node_name}.lock"

    @property
    def queues(self) -> tuple[str, ...]:
        """The Celery queues of this node, the urgent ones first."""
        own = (f"{self.device_class}.gate", f"{self.device_class}.normal")
        return (*own, "build.normal") if self.build_only_classes else own
