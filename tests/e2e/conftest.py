"""One running product that the tests of this folder share; each finds it whole and idle."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.browser import chromium
from tests.e2e.stack import Stack, until
from tests.service.github.conftest import described, github, github_url, key, octokit  # noqa: F401 - fixtures


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="session")
def _stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    stack = Stack(tmp_path_factory.mktemp("stack"))
    stack.start()
    yield stack
    stack.stop()


@pytest.fixture
def stack(_stack: Stack) -> Iterator[Stack]:
    _stack.mend()
    yield _stack
    until(_stack.idle, "the machine is as it was before")
