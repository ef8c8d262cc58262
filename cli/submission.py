"""What submitting means: the suite is there, the bundle is sent, and its evaluations are known."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from cli.bundles import Folder
from cli.client import Client
from cli.errors import CliError, ProblemError
from contract.api import EvaluationOut, ImportIn, ImportOut, RevisionIn, RevisionOut, SuiteOut
from contract.devices import DeviceClass
from contract.outcomes import State
from contract.suite import Suite
from contract.views import NodePage


@dataclass(frozen=True)
class Wanted:
    """What is asked of every folder of one `submit`. None and () leave it to the service."""

    project: str
    kernel: str | None = None
    device_classes: tuple[DeviceClass, ...] = ()
    base: str | None = None
    commit: str | None = None
    branch: str | None = None
    build_only: bool = False
    profile: bool = False


@dataclass(frozen=True)
class Submitted:
    """`notes`: what the submitter should know beside the result."""

    revision: RevisionOut
    evaluations: tuple[EvaluationOut, ...]
    suite: Suite | None
    notes: tuple[str, ...] = ()


def submit_folder(client: Client, folder: Folder, wanted: Wanted) -> Submitted:
    """POST one revision; brings its suite first where the service lacks it and the token may."""
    kernel = wanted.kernel or (folder.suite.kernel if folder.suite else None)
    if kernel is None:
        raise CliError(
            f"{folder.path}: which kernel is it a revision of? There is no suite.toml in {folder.path.parent}",
            hint="name it with --kernel",
        )
    suite, notes = settle_suite(client, wanted.project, kernel, folder.suite)
    try:
        body = RevisionIn(
            project=wanted.project,
            kernel=kernel,
            files=folder.texts(),
            commit=wanted.commit,
            branch=wanted.branch,
            base=wanted.base,
            device_classes=wanted.device_classes,
            build_only=wanted.build_only,
            profile=wanted.profile,
        )
    except ValidationError as error:
        problem = error.errors()[0]
        raise CliError(f"--{'.'.join(map(str, problem['loc']))}: {problem['msg']}") from error
    revision = client.post("/revisions", RevisionOut, body, idempotency_key=uuid.uuid4().hex)
    return Submitted(
        revision=revision,
        evaluations=asked_for(client, revision, wanted),
        suite=suite,
        notes=notes,
    )


def asked_for(client: Client, revision: RevisionOut, wanted: Wanted) -> tuple[EvaluationOut, ...]:
    """Of a revision's evaluations the newest of each wanted class, against the wanted base.

    A revision that was submitted before has older ones too, of other classes and against other bases.
    """
    newest: dict[DeviceClass, EvaluationOut] = {}
    for one in revision.evaluations:
        found = client.get(f"/evaluations/{one}", EvaluationOut)
        base = found.base
        known = {base.label, base.id, base.digest} if base else set()
        fits = not wanted.base or wanted.base in known
        if fits and found.build_only == wanted.build_only and found.profile >= wanted.profile:
            newest.setdefault(found.device_class, found)
    return tuple(
        found for klass, found in newest.items() if not wanted.device_classes or klass in wanted.device_classes
    )


def unserved(client: Client, evaluations: Iterable[EvaluationOut]) -> tuple[str, ...]:
    """Of what waits, the classes that no node takes at this moment, each in a sentence."""
    waiting = {one.device_class for one in evaluations if one.state is State.QUEUED and not one.build_only}
    if not waiting:
        return ()
    try:
        nodes = list(client.items("/nodes", NodePage))
    except CliError:
        return ()  # what was submitted is: this is only a hint
    at_hand = {node.device_class for node in nodes if node.state in {"idle", "busy"}}
    return tuple(
        f"no node of class {klass.value} is here now: it waits for one (`kernelgate nodes`)"
        for klass in sorted(waiting - at_hand)
    )


def settle_suite(
    client: Client, project: str, kernel: str, local: Suite | None
) -> tuple[Suite | None, tuple[str, ...]]:
    """The suite that will judge. The folder's is pushed where the service has none or another, if the token may."""
    stored = find_suite(client, project, kernel)
    if local is None or local.kernel != kernel:
        return stored, ()
    if stored is not None and (stored.digest, stored.revisions) == (local.digest, local.revisions):
        return stored, ()
    try:
        push_suite(client, project, local)
    except ProblemError as error:
        if error.status not in {401, 403}:
            raise
        if stored is None:
            raise CliError(
                f"{project} has no suite of {kernel}, and this token may not bring one",
                hint="somebody with a token of scope maintain runs `kernelgate suite push` once",
            ) from error
        changed = stored.digest != local.digest
        return stored, (
            (f"the suite of {kernel} here differs from the service's, which judges (pushing it needs scope maintain)",)
            if changed
            else ()
        )
    return local, (f"suite of {kernel} {'pushed' if stored is None else 'replaced by the one in the folder'}",)


def find_suite(client: Client, project: str, kernel: str) -> Suite | None:
    try:
        return client.get(f"/projects/{project}/kernels/{kernel}/suite", SuiteOut).suite
    except ProblemError as error:
        if error.status == 404 and error.kind != "unknown-project":
            return None
        raise


def suite_of(client: Client, evaluation: EvaluationOut) -> Suite | None:
    """The suite that `evaluation` was judged by, unless it has changed since or can't be had."""
    suite = find_suite(client, evaluation.project, evaluation.kernel)
    return suite if suite is not None and suite.digest == evaluation.suite_digest else None


def push_suite(client: Client, project: str, suite: Suite) -> SuiteOut:
    return client.put(f"/projects/{project}/kernels/{suite.kernel}/suite", SuiteOut, suite)


def import_csv(client: Client, file: Path, *, project: str, provenance: str, margin: float) -> ImportOut:
    try:
        body = ImportIn(csv=file.read_text(), provenance=provenance, margin=margin)
    except OSError as error:
        raise CliError(f"{file}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise CliError(f"{file}: not UTF-8 text: {error}") from error
    except ValidationError as error:
        problem = error.errors()[0]
        raise CliError(f"{file}: {'.'.join(map(str, problem['loc']))}: {problem['msg']}") from error
    return client.post(f"/projects/{project}/imports", ImportOut, body)
