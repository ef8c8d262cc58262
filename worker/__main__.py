"""`python -m worker`: this node's Celery worker. Further arguments are Celery's, such as `--loglevel DEBUG`."""

import os
import sys


def main() -> None:
    # SIGTERM waits for the evaluation at hand, but not for ever: a soft shutdown, of `soft_shutdown_s`. Celery reads
    # this before it reads any app.
    os.environ["REMAP_SIGTERM"] = "SIGQUIT"
    options = ["--without-gossip", "--without-mingle", *sys.argv[1:]]
    os.execv(sys.executable, [sys.executable, "-m", "celery", "--app", "worker.app", "worker", *options])  # noqa: S606


if __name__ == "__main__":
    main()
