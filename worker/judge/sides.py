"""Head, base and baseline: how each one's launcher is started and told a case, and the layout of its slots."""

from __future__ import annotations

from pathlib import Path

from contract.layout import SlotLayout, TensorSpec, lay_out
from contract.names import CaseId
from contract.outcomes import Reason
from contract.record import LaunchRecord
from worker.judge.device import Arena, Device
from worker.judge.faults import FaultError
from worker.launch.client import Launcher, LauncherError
from worker.launch.patience import Patience
from worker.operators.base import Dims, Operator
from worker.protocol import Detach, GpuArtifact, InterpretedArtifact, LauncherReply, Load, Side

_LEAST_SLOTS = 2
_BASELINE = ("-m", "worker.launch.baseline")
_INTERPRETER = ("-m", "worker.launch.interpreter")
# torch's import, and the vendor library's choice of its kernel.
_BASELINE_LIMIT_S = 180.0
# What the host code of a submission may say of a call that failed: not that the machine or the judge is to blame.
_BELIEVED = frozenset(
    {Reason.CRASHED, Reason.COMPILE_ERROR, Reason.ENTRY_MISSING, Reason.RETURNED_ERROR, Reason.CASE_REFUSED}
)


class Revision:
    """Head or base: an artifact that fresh launchers load. `name` is head or base."""

    def __init__(
        self,
        name: str,
        side: Side,
        *,
        device: Device,
        arena: Arena,
        run_as: tuple[str, ...],
        call_limit_s: float,
        patience: Patience | None = None,
    ) -> None:
        self.name, self.side = name, side
        self._patience = patience
        self._device, self._arena, self._run_as = device, arena, run_as
        self._call_limit_s = call_limit_s
        self._loads: dict[CaseId, Load] = {}

    def refuses(self, case: CaseId) -> str | None:
        return self.side.refused.get(case)

    def start(self) -> Launcher:
        interpreted = isinstance(self.side.artifact, InterpretedArtifact)
        return Launcher(
            _INTERPRETER if interpreted else self._device.launcher,
            arena_fd=self._arena.fd,
            arena_bytes=self._arena.bytes,
            run_as=self._run_as,
            freezes=not (self._device.measures_itself or interpreted),  # nothing interpreted is timed
            believed=None if isinstance(self.side.artifact, GpuArtifact) else _BELIEVED,
            patience=self._patience,
        )

    def load(self, launcher: Launcher, case: CaseId, dims: Dims, tensors: tuple[TensorSpec, ...]) -> SlotLayout:
        """Have the launcher load the case; the layout of its slots, workspace included."""
        known = self._loads.get(case)
        load = known or self._first_load(case, dims, tensors)
        reply = self._ask(launcher, load)
        wanted = None if isinstance(self.side.artifact, GpuArtifact) else reply.workspace_bytes or 0
        if wanted is not None and wanted != load.layout.workspace_bytes:
            if known is not None or not 0 <= wanted <= self._arena.bytes // 4:
                raise FaultError(
                    Reason.RETURNED_ERROR,
                    f"asks for {wanted} bytes of workspace: at most {self._arena.bytes // 4} are allowed, and always"
                    " the same for a case",
                    side=self.name,
                    case=case,
                )
            load = load.model_copy(update={"layout": lay_out(tensors, workspace_bytes=wanted)})
            self._ask(launcher, load)
        if _LEAST_SLOTS * load.layout.slot_bytes > self._arena.bytes:
            # Whose fault it is depends on whether the tensors alone would fit.
            fits = _LEAST_SLOTS * lay_out(tensors).slot_bytes <= self._arena.bytes
            raise FaultError(
                Reason.NOT_RECORDABLE if fits else Reason.OUT_OF_MEMORY,
                f"tensors and a workspace of {load.layout.workspace_bytes} bytes do not fit {_LEAST_SLOTS} times into"
                f" the {self._arena.bytes} bytes that there are",
                side=self.name,
                case=case,
            )
        self._loads[case] = load
        return load.layout

    def await_ready(self, launcher: Launcher) -> None:
        """Until its process can load a case."""
        self._ask(launcher, Detach())

    def _ask(self, launcher: Launcher, command: Load | Detach) -> LauncherReply:
        try:
            return launcher.ask(command, limit_s=self._call_limit_s)
        except LauncherError as error:
            case = command.case if isinstance(command, Load) else None
            raise FaultError(error.reason, str(error), side=self.name, case=case) from error

    def _first_load(self, case: CaseId, dims: Dims, tensors: tuple[TensorSpec, ...]) -> Load:
        artifact = self.side.artifact
        if isinstance(artifact, GpuArtifact):
            record = LaunchRecord.model_validate_json(Path(artifact.records[case]).read_bytes())
            # The recorder ran the submission: its layout counts only where it is the one that everyone computes.
            if record.layout != lay_out(tensors, workspace_bytes=record.layout.workspace_bytes):
                raise FaultError(
                    Reason.NOT_RELOCATABLE, "the record's layout is not the case's", side=self.name, case=case
                )
            used = {node.cubin for node in record.nodes if node.kind == "launch"}
            cubins = {digest: path for digest, path in artifact.cubins.items() if digest in used}
            return Load(case=case, dims=dict(dims), layout=record.layout, record=record, cubins=cubins)
        load = Load(case=case, dims=dict(dims), layout=lay_out(tensors), entry=artifact.entry)
        if isinstance(artifact, InterpretedArtifact):
            return load.model_copy(update={"source": artifact.source})
        return load.model_copy(update={"library": artifact.library})


class Baseline:
    """The vendor library's one process, started early and kept."""

    name = "baseline"

    def __init__(self, device: Device, arena: Arena, operator: Operator, source: str | None) -> None:
        """`source`: of the operator, where it is the suite's own."""
        self._operator, self._source = operator, source
        self.libraries: dict[str, str] = {}
        self.backends = operator.backends[device.baseline_device]
        self.launcher = Launcher(
            (*_BASELINE, "--device", device.baseline_device),
            arena_fd=arena.fd,
            arena_bytes=arena.bytes,
            freezes=not device.measures_itself,
            trusted=True,
        )

    def load(self, backend: str, case: CaseId, dims: Dims, tensors: tuple[TensorSpec, ...]) -> str | None:
        """Have it load the case; the library's name with its version, or None where the backend lacks the case."""
        load = Load(
            case=case,
            dims=dict(dims),
            layout=self.layout(tensors),
            operator=self._operator.name,
            operator_source=self._source,
            backend=backend,
        )
        try:
            reply = self.launcher.ask(load, limit_s=_BASELINE_LIMIT_S)
        except LauncherError as error:
            if error.reason is Reason.CASE_REFUSED:
                return None
            raise FaultError(Reason.BASELINE_FAILED, str(error), side=self.name, case=case) from error
        self.libraries.update(reply.libraries)
        return reply.baseline or backend

    @staticmethod
    def layout(tensors: tuple[TensorSpec, ...]) -> SlotLayout:
        return lay_out(tensors)

    def close(self) -> None:
        self.launcher.close()
