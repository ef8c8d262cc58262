"""What the demo submits and imports, read off the folders of the project."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from cli.bundles import Folder, read_folder, read_suite
from cli.errors import CliError
from contract.devices import DeviceClass
from contract.suite import Suite

# Folders beside the listed revisions that are meant to be caught.
BAD = "demo_*"
NO_PROVENANCE = "carried by the project"


@dataclass(frozen=True)
class Step:
    """One revision to submit. `must_fail`: it is there to be caught. On `cpu`, what needs a card is compiled for the
    architectures that its manifest names, and verified where that works without one."""

    folder: Folder
    suite: Suite
    device_classes: tuple[DeviceClass, ...]
    base: str | None = None
    must_fail: bool = False


@dataclass(frozen=True)
class History:
    """A file to import, with what its head says of its origin."""

    file: Path
    provenance: str


@dataclass(frozen=True)
class Plan:
    steps: tuple[Step, ...]
    histories: tuple[History, ...]
    left_out: tuple[str, ...]

    @property
    def suites(self) -> tuple[Suite, ...]:
        return tuple({step.suite.kernel: step.suite for step in self.steps}.values())


def plan(root: Path, *, compiles: dict[str, bool], node: DeviceClass = DeviceClass.CPU) -> Plan:
    """What a machine with a worker of class `node` can show. `compiles`: whether it has a compiler for each language.

    Raises CliError where there are no kernels.
    """
    kernels = sorted(file.parent for file in root.glob("kernels/*/suite.toml"))
    if not kernels:
        raise CliError(
            f"{root}: there are no kernels/*/suite.toml", hint="run it in the project's folder, or use --root"
        )
    steps: list[Step] = []
    left_out: list[str] = []
    # What is measured comes first: it is what people wait for.
    for kernel in sorted(kernels, key=lambda folder: DeviceClass.CPU not in read_suite(folder).device_classes):
        suite = read_suite(kernel)
        if node is not DeviceClass.CPU and node not in suite.device_classes:
            continue
        listed = [read_folder(kernel / name) for name in suite.revisions]
        missing = sorted({one.manifest.language for one in listed if not compiles[one.manifest.language]})
        if missing:
            left_out.append(f"{suite.kernel}: there is no compiler for {', '.join(missing)} here (`kernelgate doctor`)")
            continue
        steps += [Step(folder, suite, (node,)) for folder in listed]
        base = listed[-1].manifest.label if listed else None
        steps += [
            Step(read_folder(folder), suite, (DeviceClass.CPU,), base=base, must_fail=True)
            for folder in sorted(kernel.glob(BAD))
            if folder.is_dir() and folder.name not in suite.revisions
        ]
    histories = tuple(History(file, provenance(file)) for file in sorted(root.glob("data/*.csv")))
    return Plan(tuple(steps), histories, tuple(left_out))


def provenance(file: Path) -> str:
    """The comment that a history begins with."""
    said = []
    for line in file.read_text().splitlines():
        if not line.startswith("#"):
            break
        said.append(line.lstrip("# ").strip())
    return " ".join(said)[:2000] or f"{file.name}, {NO_PROVENANCE}"
