import socket
import subprocess
import time
from collections.abc import Callable, Sequence

import pytest


@pytest.fixture
def unused_port() -> int:
    return _unused_port()


@pytest.fixture
def unused_ports() -> Callable[[int], list[int]]:
    return lambda count: [_unused_port() for _ in range(count)]


def _unused_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def eventually_succeeds() -> Callable[..., bool]:
    def succeeds(command: Sequence[str], *, env: dict[str, str], limit_s: float = 60.0) -> bool:
        """Whether the command exits 0 before the limit; tried again until then."""
        ends = time.monotonic() + limit_s
        while time.monotonic() < ends:
            if subprocess.run(command, env=env, capture_output=True, check=False).returncode == 0:
                return True
            time.sleep(0.1)
        return False

    return succeeds
