"""What every builder gets and gives."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from contract.base import Model
from contract.manifest import Language, Manifest
from contract.names import Digest
from contract.outcomes import Reason
from contract.report import MAX_MESSAGE
from contract.statics import FunctionStatics
from contract.suite import Case, Suite
from worker.inspect import Elf, ElfError
from worker.process import Finished

INCLUDE = Path(__file__).parent / "include"
HEADER_DIGEST = hashlib.sha256((INCLUDE / "kernelgate.h").read_bytes()).hexdigest()
MAX_LIBRARY_BYTES = 256 << 20
COMPILER_FILE_BYTES = 1 << 30


class BuildFailed(Exception):  # noqa: N818 - the outcome's name
    """The submission doesn't build, and why. Its message is safe to show: capped, without foreign paths."""

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class ToolchainMissing(Exception):  # noqa: N818
    """This node can't compile the language; the submission has no part in it."""


class Built(Model):
    """What a build leaves in its folder; names are those of files there.

    `made_up_names`: parts of names that differ from folder to folder, and that no comparison may see.
    """

    language: Language
    entry: str
    library: str | None = None
    source: str | None = None
    cubins: dict[Digest, str] = {}
    statics: tuple[FunctionStatics, ...] = ()
    made_up_names: tuple[str, ...] = ()
    toolchain: dict[str, str] = {}
    log: str = ""


class Runner(Protocol):
    """Runs a child in the evaluation's private room, under its limits and its sandbox."""

    def __call__(
        self,
        argv: Sequence[str],
        *,
        cwd: Path,
        limit_s: float,
        stdin: bytes = b"",
        memory_bytes: int = 0,
        file_bytes: int = 0,
        readable: Sequence[Path] = (),
        writable: Sequence[Path] = (),
    ) -> Finished: ...


@dataclass(frozen=True, kw_only=True)
class Request:
    """`bundle` holds the revision's files; results go to `out`, anything else to `scratch`.

    `architecture` is None on a CPU. `compile_cases`: cases to specialise for where that has to be done without a card.
    """

    manifest: Manifest
    suite: Suite
    bundle: Path
    out: Path
    scratch: Path
    architecture: str | None
    compile_cases: tuple[Case, ...]
    limit_s: float
    memory_bytes: int
    run: Runner


class Toolchain(Protocol):
    def versions(self) -> dict[str, str]:
        """Name -> version of everything that decides what is built; raises ToolchainMissing."""

    def build(self, request: Request) -> Built:
        """Raises BuildFailed, ToolchainMissing."""


def check_flags(flags: Sequence[str], *, allowed: Sequence[tuple[str, str]], language: str) -> None:
    """`allowed`: (pattern, how it is said to people)."""
    for flag in flags:
        if not any(re.fullmatch(pattern, flag) for pattern, _ in allowed):
            known = ", ".join(shown for _, shown in allowed) or "none"
            raise BuildFailed(
                Reason.FLAG_NOT_ALLOWED, f"flag {flag[:200]!r} is not allowed for {language} (allowed: {known})"
            )


def check_compiled(done: Finished, *, request: Request, compiler: str) -> str:
    """The compiler's text; raises BuildFailed where it failed or ran out of time."""
    text = shown(done.stderr + b"\n" + done.stdout, request=request)
    if done.timed_out:
        raise BuildFailed(
            Reason.COMPILE_TIMED_OUT, f"{compiler} was ended after {request.limit_s:g} s\n{text}"[:MAX_MESSAGE]
        )
    if done.returncode:
        ended = f"by signal {-done.returncode}" if done.returncode < 0 else f"with {done.returncode}"
        raise BuildFailed(Reason.COMPILE_ERROR, f"{compiler} ended {ended}\n{text}"[:MAX_MESSAGE])
    return text


def shown(output: bytes, *, request: Request) -> str:
    """Compiler text for people: the bundle's own paths alone, no control characters, capped."""
    text = output.decode("utf-8", "replace")
    for folder in (request.bundle, request.scratch, request.out, INCLUDE):
        text = text.replace(f"{folder}/", "").replace(str(folder), ".")
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)
    text = "".join(char for char in text if char in "\n\t" or char.isprintable()).strip()
    if len(text) > MAX_MESSAGE - 500:
        text = text[: MAX_MESSAGE - 600] + "\n[... left out ...]"
    return text


def check_entry(library: Path, *, entry: str, source: str) -> Elf:
    """The library, once it is known to define `entry`; read without loading it."""
    if library.stat().st_size > MAX_LIBRARY_BYTES:
        raise BuildFailed(Reason.COMPILE_ERROR, f"the library is over {MAX_LIBRARY_BYTES} bytes")
    try:
        elf = Elf(library.read_bytes())
        symbols = elf.symbols(".dynsym")
    except ElfError as error:
        raise BuildFailed(Reason.COMPILE_ERROR, f"the compiler's output can't be read: {error}") from error
    if not any(symbol.name == entry and symbol.is_defined_function for symbol in symbols):
        raise BuildFailed(
            Reason.ENTRY_MISSING,
            f'{source} defines no function {entry} with C linkage (extern "C", not static; see kernelgate.h)',
        )
    return elf
