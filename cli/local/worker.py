"""`kernelgate worker`: this process becomes the node's Celery worker."""

from __future__ import annotations

import os
from typing import NoReturn


def become_worker(arguments: tuple[str, ...]) -> NoReturn:
    """Replace this process, so that signals reach Celery itself. `arguments` follow its own."""
    from worker.app import command  # noqa: PLC0415

    argv = [*command(), *arguments]
    os.execv(argv[0], argv)  # noqa: S606
