"""The service with a GitHub App, and a GitHub for it to talk to."""

import fcntl
import json
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from pydantic import SecretStr

from tests.service.conftest import Backends, Running, listen, wait_for
from tests.service.github.described import Described
from tests.service.github.fake import APP_ID, FakeGithub, FakeRepository
from tests.service.github.gated import SECRET, Gated
from tests.service.github.gitrepo import GitRepo

_HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def octokit() -> Path:
    """What GitHub publishes as npm packages, installed as package-lock.json pins it."""
    modules = _HERE / "node_modules"
    with (Path(tempfile.gettempdir()) / "kernelgate-npm.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not _is_installed(modules):
            npm = shutil.which("npm")
            if npm is None:
                pytest.fail("npm is missing: install Node.js 20 or later (Debian: apt-get install npm)")
            command = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
            ran = subprocess.run(command, cwd=_HERE, capture_output=True, text=True, check=False)
            assert ran.returncode == 0, f"npm ci failed: {ran.stderr}"
    return modules / "@octokit"


def _is_installed(modules: Path) -> bool:
    wanted = json.loads((_HERE / "package.json").read_text())["devDependencies"]
    found = {name: modules / name / "package.json" for name in wanted}
    return all(
        file.is_file() and json.loads(file.read_text())["version"] == wanted[name] for name, file in found.items()
    )


@pytest.fixture(scope="session")
def described(octokit: Path) -> Described:
    return Described(octokit / "openapi/generated/api.github.com.json")


@pytest.fixture(scope="session")
def key(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, bytes]:
    """The App's private key as a file, and the public one."""
    private = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    file = tmp_path_factory.mktemp("key") / "app.pem"
    file.write_bytes(
        private.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    public = private.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return file, public


@pytest.fixture
def github(described: Described, key: tuple[Path, bytes], tmp_path: Path) -> Iterator[FakeGithub]:
    """With one repository, acme/kernels. No request may be one that GitHub's description doesn't know."""
    fake = FakeGithub(described, key[1])
    git = GitRepo(tmp_path / "acme-kernels.git")
    fake.add(FakeRepository(id=1_234_567_890, full_name="acme/kernels", installation=55, git=git))
    yield fake
    assert fake.violations == []


@pytest.fixture
def github_url(github: FakeGithub) -> Iterator[str]:
    server = uvicorn.Server(uvicorn.Config(github, log_level="warning", ws="none", lifespan="off"))
    listening = listen()
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    wait_for(lambda: server.started)
    yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    server.should_exit = True
    thread.join()
    listening.close()


@pytest.fixture
def gate_database() -> str:
    """Tests that ask for another one parametrise it."""
    return "sqlite"


@pytest.fixture
def make_gated(
    backends: Backends, gate_database: str, github: FakeGithub, github_url: str, key: tuple[Path, bytes]
) -> Iterator[Any]:
    """Start the service with its gate on, with other settings."""
    started: list[Running] = []
    backend = backends.get(gate_database)
    backend.empty()

    def make(**changes: Any) -> Gated:
        settings = backend.settings.model_copy(
            update={
                "github_app_id": APP_ID,
                "github_private_key": key[0],
                "github_webhook_secret": SecretStr(SECRET),
                "github_url": github_url,
                "github_every_s": 0.03,
                "github_progress_s": 0.05,
                "github_timeout_s": 5.0,
                "github_pause_s": 0.02,
                "public_url": "https://kernelgate.example.org",
                **changes,
            }
        )
        running = Running(settings, backend.publisher)
        started.append(running)
        running.start()
        return Gated(running, github, github.repositories["acme/kernels"])

    yield make
    for running in started:
        running.stop()


@pytest.fixture
def gated(make_gated: Any) -> Gated:
    gated: Gated = make_gated()
    return gated
