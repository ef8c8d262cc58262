"""Where NVIDIA's tools are on this node."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

_NSIGHT = Path("/opt/nvidia/nsight-compute")
_TOOLKIT = Path("/usr/local/cuda")


class NotHereError(Exception):
    """The tool is not on this node; the message says so."""


@dataclass(frozen=True)
class Program:
    """`path` is no link. `needs`: the folders that it reads, beside those of the system below /usr."""

    path: Path
    needs: tuple[Path, ...]


def ncu(given: str | None = None) -> Program:
    """`given`: a setting's; else from PATH, the toolkit, or the newest of Nsight Compute's own folder."""
    newest = sorted(_NSIGHT.glob("*/ncu"), key=lambda path: [int(part) for part in re.findall(r"\d+", str(path))])
    return _found("ncu", given, (_TOOLKIT / "bin" / "ncu", *reversed(newest)), setting="KERNELGATE_NCU")


def compute_sanitizer(given: str | None = None) -> Program:
    places = (_TOOLKIT / "bin" / "compute-sanitizer", _TOOLKIT / "compute-sanitizer" / "compute-sanitizer")
    return _found("compute-sanitizer", given, places, setting="KERNELGATE_COMPUTE_SANITIZER")


def _found(name: str, given: str | None, places: Iterable[Path], *, setting: str) -> Program:
    found = shutil.which(given or name)
    path = Path(found) if found else None
    if path is None and given is None:
        path = next((place for place in places if place.is_file()), None)
    if path is None:
        raise NotHereError(f"this node has no {given or name} (it comes with the CUDA toolkit; {setting} names it)")
    path = path.resolve()
    return Program(path=path, needs=tuple(_needed(path)))


def _needed(path: Path) -> Iterable[Path]:
    """Its folder; the toolkit's where it lies in `bin`. The one in a toolkit's `bin` is a script that calls the one in
    Nsight Compute's own folder."""
    own = path.parent.parent if path.parent.name == "bin" else path.parent
    for folder in dict.fromkeys((own, _NSIGHT.resolve())):
        private = folder in (Path("/"), Path.home(), *Path.home().parents)
        if folder.is_dir() and not private and not folder.is_relative_to("/usr"):
            yield folder
