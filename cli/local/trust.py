"""What a worker on this machine may run: everything in a sandbox; without one, what ships with the program."""

from __future__ import annotations

import ipaddress
import json
import os
from collections.abc import Callable
from pathlib import Path

import cli
from cli.bundles import read_folder
from contract.devices import DeviceClass
from contract.names import LOCAL_PROJECT

KERNELS = Path(cli.__file__).parents[1] / "kernels"


def sandbox_variables(*, host: str, node: DeviceClass, say: Callable[[str], None]) -> dict[str, str]:
    """What the environment of `up`'s worker has to say of it. Says aloud where nothing confines what it runs."""
    from worker.sandbox import choose  # noqa: PLC0415
    from worker.settings import WorkerSettings  # noqa: PLC0415

    settings = WorkerSettings()
    sandbox = choose(settings)
    if sandbox.isolates:
        return {}
    if settings.sandbox == "off":
        say("the worker runs WITHOUT A SANDBOX, as asked: whatever is submitted runs with your rights")
        return {}
    if node is not DeviceClass.CPU or not _is_loopback(host):
        say(f"{sandbox.problem}. The worker takes nothing; see `kernelgate doctor`")
        return {}
    say(f"{sandbox.problem}. The worker runs the kernels that ship with the program, and nothing else")
    return {"KERNELGATE_TRUSTED_BUNDLES": json.dumps(shipped_bundles())}


def operator_variables(*, host: str) -> dict[str, str]:
    """On loopback the suites are those of whoever holds this machine's tokens, and so are their operators."""
    if "KERNELGATE_OWN_OPERATORS" in os.environ or not _is_loopback(host):
        return {}
    return {"KERNELGATE_OWN_OPERATORS": json.dumps([LOCAL_PROJECT])}


def shipped_bundles() -> list[str]:
    """The digests of every revision below kernels/."""
    return sorted({read_folder(file.parent).digest for file in KERNELS.glob("*/*/kernel.toml")})


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
