"""The home folder of a service that runs on this machine, and what is written there."""

from __future__ import annotations

import fcntl
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from cli.errors import CliError, Exit
from contract.text import one_line

FOLDER = ".kernelgate"


@dataclass(frozen=True)
class Running:
    """A service that `up` keeps running. `pid`: of the supervisor."""

    url: str
    pid: int


@dataclass(frozen=True)
class Home:
    path: Path

    @property
    def lock(self) -> Path:
        return self.path / "up.lock"

    @property
    def logs(self) -> Path:
        return self.path / "logs"

    @property
    def database_url(self) -> str:
        return f"sqlite:///{self.path / 'kernelgate.db'}"

    def token(self, name: str = "admin") -> str | None:
        file = self.path / "tokens" / name
        return file.read_text().strip() if file.is_file() else None

    def keep_token(self, secret: str, name: str = "admin") -> None:
        self.make()
        (self.path / "tokens").mkdir(mode=0o700, exist_ok=True)
        write_private(self.path / "tokens" / name, secret + "\n")

    def running(self) -> Running | None:
        """The service here, where a supervisor lives and has said that it is ready."""
        if not self.held():
            return None
        try:
            return Running(**json.loads((self.path / "running.json").read_text()))
        except (OSError, ValueError, TypeError):
            return None

    def held(self) -> bool:
        """Whether a supervisor holds the lock: the kernel frees it however that process ended."""
        try:
            with self.lock.open("r") as file:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except FileNotFoundError:
            return False
        except BlockingIOError:
            return True
        return False

    def say_running(self, running: Running | None) -> None:
        file = self.path / "running.json"
        if running is None:
            file.unlink(missing_ok=True)
        else:
            write_private(file, json.dumps(asdict(running)) + "\n")

    def make(self) -> None:
        """Create the folder, readable by its owner alone: it holds tokens and the broker's socket."""
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.logs.mkdir(exist_ok=True)
        ignore = self.path / ".gitignore"
        if not ignore.exists():
            ignore.write_text("*\n")


def find_home() -> Home:
    """KERNELGATE_HOME, else the nearest `.kernelgate` of ours from here upwards, else one to be made here."""
    named = os.environ.get("KERNELGATE_HOME")
    if named:
        return Home(Path(named).expanduser().absolute())
    here = Path.cwd()
    for folder in (here, *here.parents):
        candidate = folder / FOLDER
        # Somebody else's folder in /tmp must not send our token or our kernels anywhere.
        if candidate.is_dir() and candidate.stat().st_uid == os.getuid():
            return Home(candidate)
    return Home(here / FOLDER)


def service_address(home: Home) -> tuple[str, str | None]:
    """URL and token: KERNELGATE_URL and KERNELGATE_TOKEN, else the local service's. Raises CliError."""
    url, token = _given("KERNELGATE_URL"), _given("KERNELGATE_TOKEN")
    if url is not None and not url.startswith(("http://", "https://")):
        raise CliError(f"KERNELGATE_URL is {one_line(url)!r}", hint="it begins with http:// or https://")
    if token is not None and not (token.isascii() and token.isprintable()):
        raise CliError("KERNELGATE_TOKEN holds what no token does", hint="was more copied than the token?")
    running = home.running()
    if url is None and running is None:
        raise CliError(
            "no service is known here",
            hint="start one with `kernelgate up`, or set KERNELGATE_URL and KERNELGATE_TOKEN",
            code=Exit.NOT_MEASURED,
        )
    if url is None and running is not None:
        url = running.url
    assert url is not None  # noqa: S101
    # A local token goes to the local service alone.
    if token is None and running is not None and url.rstrip("/") == running.url.rstrip("/"):
        token = home.token()
    return url, token


def _given(variable: str) -> str | None:
    """Its value without what a file or a copy adds around it; None where it is empty."""
    return os.environ.get(variable, "").strip() or None


def write_private(path: Path, text: str) -> None:
    """Replace `path` in one step by a file that its owner alone may read."""
    draft = path.with_name(path.name + ".new")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
    draft.replace(path)
