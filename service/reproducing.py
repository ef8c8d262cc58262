"""The command that measures the same again, in a checkout of the repository."""

import shlex

from service.models import Evaluation, Kernel, Revision


def reproduce_command(evaluation: Evaluation, *, kernel: Kernel, head: Revision, base: Revision | None) -> str | None:
    """None where the suite's list doesn't say which folder a side is, or a side has no files (it was imported)."""
    folder = _folder(kernel, head)
    base_folder = _folder(kernel, base) if base else None
    if folder is None or (base is not None and base_folder is None):
        return None
    steps = [["git", "switch", "--detach", head.commit]] if head.commit else []
    run = ["kernelgate", "run", folder, "--device-class", evaluation.device_class]
    if base is not None and base_folder is not None:
        if base.commit and base.commit != head.commit:
            beside = f".base-{base.commit[:12]}"
            steps.append(["git", "worktree", "add", beside, base.commit])
            base_folder = f"{beside}/{base_folder}"
        run += ["--base", base_folder]
    if evaluation.profile:
        run.append("--profile")
    return " && ".join(shlex.join(step) for step in [*steps, run])


def _folder(kernel: Kernel, revision: Revision) -> str | None:
    if revision.digest is None or revision.position is None or revision.position >= len(kernel.listed):
        return None
    return f"kernels/{kernel.name}/{kernel.listed[revision.position]}"
