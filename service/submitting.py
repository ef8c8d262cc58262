"""A submission becomes a revision and its evaluations, in one transaction."""

import hashlib
import json
from dataclasses import dataclass

from sqlmodel import Session, select

from contract import bundle
from contract.api import RevisionIn, Scope
from contract.bundle import BundleError, Files
from contract.manifest import Manifest, ManifestError, check_constraints
from contract.suite import Suite
from contract.text import one_line
from service import find
from service.auth import Principal
from service.bases import named_base, position_of
from service.database import insert_if_missing
from service.evaluations import check_device_class, ensure_evaluation
from service.models import Bundle, Evaluation, IdempotencyKey, Kernel, Project, Revision
from service.problems import ProblemError
from service.projects import suite_of
from service.settings import Settings
from service.text import clean_json

DEFAULT_BRANCHES = frozenset({"main", "master"})


@dataclass(frozen=True, kw_only=True)
class Submission:
    """A checked bundle and what is asked of it. `wanted.files` may be empty: `files` counts."""

    wanted: RevisionIn
    files: Files
    manifest: Manifest
    digest: str


@dataclass(frozen=True, kw_only=True)
class Submitted:
    revision: Revision
    project: Project
    kernel: Kernel
    created: bool
    queued: list[Evaluation]


def check_submission(wanted: RevisionIn, files: Files) -> Submission:
    """Raises ProblemError `bundle-…`: 413 where it is too large, else 422."""
    try:
        manifest = bundle.check(files)
    except BundleError as error:
        raise bundle_problem(error) from error
    return Submission(wanted=wanted, files=files, manifest=manifest, digest=bundle.digest(files))


def bundle_problem(error: BundleError) -> ProblemError:
    name = f"bundle-{error.kind.replace('_', '-')}"
    return ProblemError(413 if error.kind == "too_large" else 422, name, str(error), field="files")


def check_target(session: Session, *, principal: Principal, submission: Submission) -> None:
    """What can be refused before anything is stored: unknown names, constraints that name no dimension."""
    wanted = submission.wanted
    project = find.project_by_slug(session, principal=principal, slug=wanted.project)
    kernel = find.kernel_by_name(session, project=project, name=wanted.kernel)
    suite = suite_of(find.current_suite(session, kernel), kernel)
    try:
        check_constraints(submission.manifest, suite.operator_schema)
    except ManifestError as error:
        raise bundle_problem(BundleError("bad_manifest", str(error))) from error
    for device_class in wanted.device_classes:
        check_device_class(suite, device_class)


def submit(
    session: Session,
    *,
    principal: Principal,
    submission: Submission,
    archive_bytes: int,
    idempotency_key: str | None,
    settings: Settings,
) -> Submitted:
    wanted = submission.wanted
    project = find.project_by_slug(session, principal=principal, slug=wanted.project)
    kernel = find.kernel_by_name(session, project=project, name=wanted.kernel, lock=True)
    suite_row = find.current_suite(session, kernel)
    suite = suite_of(suite_row, kernel)
    identity = f"{submission.digest}:{wanted.commit or ''}"
    revision = session.exec(
        select(Revision).where(Revision.kernel_id == kernel.id, Revision.identity == identity)
    ).first()
    created = revision is None
    if revision is None:
        if session.get(Bundle, submission.digest) is None:
            insert_if_missing(session, Bundle(digest=submission.digest, bytes=archive_bytes))
        revision = _new_revision(principal=principal, submission=submission, kernel=kernel, suite=suite)
        session.add(revision)
        session.flush()
    if idempotency_key:
        asked = wanted.model_dump_json(exclude={"files"})
        fingerprint = fingerprint_of("revision", kernel.id, identity, asked)
        if recall(session, project=project, key=idempotency_key, fingerprint=fingerprint) is not None:
            return Submitted(revision=revision, project=project, kernel=kernel, created=False, queued=[])
        remember(session, project=project, key=idempotency_key, fingerprint=fingerprint, resource_id=revision.id)
    base = named_base(session, kernel=kernel, head=revision, name=wanted.base) if wanted.base else None
    queued = [
        evaluation
        for device_class in dict.fromkeys(wanted.device_classes or suite.device_classes)
        if (
            evaluation := ensure_evaluation(
                session,
                kernel=kernel,
                suite_row=suite_row,
                revision=revision,
                base=base,
                device_class=device_class,
                build_only=wanted.build_only,
                profile=wanted.profile,
                settings=settings,
            )
        )
    ]
    return Submitted(revision=revision, project=project, kernel=kernel, created=created, queued=queued)


def fingerprint_of(*parts: str) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def recall(session: Session, *, project: Project, key: str, fingerprint: str) -> str | None:
    """The id that this key was answered before. Raises 409 where the key came with another request."""
    row = session.get(IdempotencyKey, (project.id, key))
    if row is None:
        return None
    if row.fingerprint != fingerprint:
        raise ProblemError(
            409,
            "idempotency-key-reused",
            f"Idempotency-Key {key!r} came with another request before; use a new one",
            field="Idempotency-Key",
        )
    return row.resource_id


def remember(session: Session, *, project: Project, key: str, fingerprint: str, resource_id: str) -> None:
    """Bind the key to its answer, or see that it is bound to the same."""
    if recall(session, project=project, key=key, fingerprint=fingerprint) is None:
        session.add(IdempotencyKey(project_id=project.id, key=key, fingerprint=fingerprint, resource_id=resource_id))
        session.flush()


def _new_revision(*, principal: Principal, submission: Submission, kernel: Kernel, suite: Suite) -> Revision:
    wanted, manifest = submission.wanted, submission.manifest
    position = position_of(manifest.label, kernel.listed)
    listed = position is not None or not suite.revisions
    on_main = wanted.branch is None or wanted.branch in DEFAULT_BRANCHES
    return Revision(
        kernel_id=kernel.id,
        identity=f"{submission.digest}:{wanted.commit or ''}",
        label=manifest.label,
        summary=one_line(manifest.summary, 300),
        digest=submission.digest,
        commit=wanted.commit,
        branch=one_line(wanted.branch, 255) if wanted.branch else None,
        # Points of the main line come from scope maintain alone (later: from verified pushes too).
        mainline=principal.may(Scope.MAINTAIN) and on_main and listed,
        position=position,
        manifest=clean_json(manifest.model_dump(mode="json")),
    )
