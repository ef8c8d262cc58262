"""What all tests share: those that measure time run alone, though pytest runs in several processes."""

import fcntl
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def _locks(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path | None:
    """A folder that all of this run's processes know; None where there is but one."""
    return tmp_path_factory.getbasetemp().parent if hasattr(request.config, "workerinput") else None


@pytest.fixture(autouse=True)
def _alone(request: pytest.FixtureRequest, _locks: Path | None) -> Iterator[None]:
    """A test marked `alone` waits until no other runs, and none starts beside it."""
    if _locks is None:
        yield
        return
    alone = request.node.get_closest_marker("alone") is not None
    with (_locks / "turnstile").open("w") as turnstile, (_locks / "room").open("w") as room:
        # Whoever waits for the room keeps the turnstile, so that those who come later can't keep it waiting for ever.
        fcntl.flock(turnstile, fcntl.LOCK_EX)
        fcntl.flock(room, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        fcntl.flock(turnstile, fcntl.LOCK_UN)
        yield
