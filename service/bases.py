"""Which revision another one is compared with."""

from sqlalchemy import desc
from sqlmodel import Session, col, select

from contract.outcomes import Outcome, State
from service.kernels import series_order
from service.models import Evaluation, Kernel, Revision
from service.problems import ProblemError

# What no other revision should be measured against.
_BAD = (Outcome.INCORRECT, Outcome.BUILD_FAILED, Outcome.UNTRUSTED)


def position_of(label: str, listed: list[str]) -> int | None:
    """The place in the suite's list of the folder of `label`: `v4` is in `v4`, `v4_swizzle` or `v4-swizzle`."""
    for place, folder in enumerate(listed):
        if folder == label or folder.startswith((f"{label}_", f"{label}-")):
            return place
    return None


def named_base(session: Session, *, kernel: Kernel, head: Revision, name: str) -> Revision:
    """The revision of `kernel` that `name` (an id, a digest or a label) means; of several with one label the newest
    mainline one, else the newest, and `head` itself only where nothing else has that label.

    Raises ProblemError 422 `unknown-base`, or `base-without-files` for an imported one.
    """
    of_kernel = select(Revision).where(Revision.kernel_id == kernel.id)
    found = session.exec(of_kernel.where(Revision.id == name)).first()
    if found is None:
        newest = (desc(col(Revision.mainline)), desc(col(Revision.id)))
        digests = session.exec(of_kernel.where(Revision.digest == name).order_by(*newest)).all()
        labels = session.exec(of_kernel.where(Revision.label == name).order_by(*newest)).all()
        runnable = [each for each in (*digests, *labels) if each.digest] or [*labels]
        found = next((each for each in runnable if each.id != head.id), next(iter(runnable), None))
    if found is None:
        raise ProblemError(
            422,
            "unknown-base",
            f"kernel {kernel.name} has no revision whose id, digest or label is {name!r}",
            field="base",
        )
    if found.digest is None:
        raise ProblemError(
            422,
            "base-without-files",
            f"{found.label} was imported: there are no files to measure against",
            field="base",
        )
    return found


def default_base(session: Session, *, kernel: Kernel, head: Revision, device_class: str) -> Revision | None:
    """The revision before `head` in the suite's list, else the mainline's last revision, else None; never an imported
    one, one that was pushed away from the mainline, or one known to be bad on `device_class` (a reverted revision is
    nobody's base)."""
    bad = select(Evaluation.revision_id).where(
        Evaluation.state == State.FINISHED,
        Evaluation.device_class == device_class,
        col(Evaluation.outcome).in_(_BAD),
    )
    candidates = select(Revision).where(
        Revision.kernel_id == kernel.id,
        Revision.id != head.id,
        col(Revision.digest).is_not(None),
        col(Revision.pushed_away).is_(False),
        col(Revision.id).not_in(bad),
    )
    newest = (desc(col(Revision.mainline)), *(part.desc() for part in series_order()))
    if head.position:
        before = session.exec(candidates.where(Revision.position == head.position - 1).order_by(*newest)).first()
        if before is not None:
            return before
    return session.exec(candidates.where(col(Revision.mainline).is_(True)).order_by(*newest)).first()
