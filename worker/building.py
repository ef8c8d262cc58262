"""Builds one side of an evaluation, or finds it built."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from contract.bundle import BundleError, Files, check
from contract.job import RevisionRef
from contract.manifest import Manifest
from contract.outcomes import Reason, Stage
from contract.suite import Case, Suite
from worker.cache import Cache, key_of
from worker.failure import Failed
from worker.operators import tensors_of
from worker.room import Room
from worker.settings import WorkerSettings
from worker.targets import Target
from worker.toolchains import BuildFailed, Built, Request, ToolchainMissing, toolchain_for
from worker.toolchains.base import HEADER_DIGEST

_KIND = "build"
_BUILT = "built.json"


@dataclass(frozen=True, kw_only=True)
class BuiltSide:
    """`folder` holds the build's files, `bundle` the revision's own. `refused`: case id -> why it isn't supported."""

    ref: RevisionRef
    manifest: Manifest
    built: Built
    bundle: Path
    folder: Path
    key: str
    cached: bool
    architecture: str | None
    refused: dict[str, str]

    def file(self, name: str) -> Path:
        return self.folder / name


def manifest_of(ref: RevisionRef, files: Files) -> Manifest:
    """Raises Failed: the service has checked the bundle, so that a wrong one isn't the one that was checked."""
    try:
        return check(files)
    except BundleError as error:
        raise Failed(Reason.INTERNAL_ERROR, Stage.BUILD, f"the bundle of {ref.label}: {error}") from error


def build_side(
    ref: RevisionRef,
    files: Files,
    *,
    target: Target,
    suite: Suite,
    room: Room,
    cache: Cache,
    settings: WorkerSettings,
) -> BuiltSide:
    """Raises Failed, process.Cancelled."""
    manifest = manifest_of(ref, files)
    refused = refused_cases(manifest, suite)
    architecture = target.architecture
    # On a card, Triton compiles for each case while it is recorded.
    without_card = manifest.language == "triton" and not target.at_hand
    compile_cases = tuple(case for case in suite.cases if without_card and case.id not in refused)
    toolchain = toolchain_for(manifest.language, settings)
    # By label too: head and base may be one digest.
    names = (ref.label, ref.digest[:16], architecture or "cpu")
    bundle, out = room.write(files, *names, "bundle"), room.path.joinpath(*names, "out")
    try:
        key = key_of(
            bundle=ref.digest,
            architecture=architecture,
            header=HEADER_DIGEST,
            cases=";".join(call_of(suite, case) for case in compile_cases) or None,
            **toolchain.versions(),
        )
        with cache.lock(_KIND, key, check=room.check):
            built = _cached(cache, key, out)
            cached = built is not None
            if built is None:
                out.mkdir()
                built = toolchain.build(
                    Request(
                        manifest=manifest,
                        suite=suite,
                        bundle=bundle,
                        out=out,
                        scratch=room.folder(*names, "scratch"),
                        architecture=architecture,
                        compile_cases=compile_cases,
                        limit_s=settings.compile_limit_s,
                        memory_bytes=settings.compile_memory_bytes,
                        run=room.run,
                    )
                )
                (out / _BUILT).write_text(built.model_dump_json())
                cache.put(_KIND, key, out)
    except BuildFailed as error:
        raise Failed(error.reason, Stage.BUILD, str(error)) from error
    except ToolchainMissing as error:
        raise Failed(Reason.TOOLCHAIN_MISSING, Stage.BUILD, str(error)) from error
    return BuiltSide(
        ref=ref,
        manifest=manifest,
        built=built,
        bundle=bundle,
        folder=out,
        key=key,
        cached=cached,
        architecture=architecture,
        refused=refused,
    )


def refused_cases(manifest: Manifest, suite: Suite) -> dict[str, str]:
    reasons = {case.id: manifest.constraints.refusal(case.dims) for case in (*suite.cases, *suite.verify_cases)}
    return {case: reason for case, reason in reasons.items() if reason is not None}


def supported_cases(manifest: Manifest, suite: Suite) -> tuple[Case, ...]:
    """Timed and verified ones, each once."""
    cases = {case.id: case for case in (*suite.cases, *suite.verify_cases)}
    return tuple(case for case in cases.values() if manifest.constraints.refusal(case.dims) is None)


def call_of(suite: Suite, case: Case) -> str:
    """What a revision's host code is told of a case: two operators of one name may have other tensors."""
    tensors = (f"{each.name} {each.role.value} {each.dtype} {each.shape}" for each in tensors_of(suite, case))
    return f"{case.id}: {', '.join(tensors)}"


def digest_of(side: BuiltSide) -> str:
    """Of what runs on a CPU: the library, its entry and the toolchain."""
    library = hashlib.sha256(side.file(side.built.library or "").read_bytes()).hexdigest()
    return key_of(library=library, entry=side.built.entry, **side.built.toolchain)


def _cached(cache: Cache, key: str, out: Path) -> Built | None:
    if not cache.get(_KIND, key, out):
        return None
    try:
        return Built.model_validate_json((out / _BUILT).read_bytes())
    except (OSError, ValidationError):  # written by another version of this program
        for file in out.iterdir():
            file.unlink()
        out.rmdir()
        return None
