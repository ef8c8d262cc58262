"""`kernelgate ci` in a job of GitHub Actions, against a real service; the node answers over the worker's API."""

import json
import os
import re
import subprocess
import sys
import sysconfig
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
import yaml

from contract.api import Scope
from contract.manifest import parse_suite
from service.github.oidc import Keys
from service.models import Project
from tests.service.conftest import Backends, Running, wait_for
from tests.service.github.gated import KERNEL, base_files, revision, suite, times
from tests.service.github.gitrepo import GitRepo
from tests.service.github.test_job_tokens import RULE, Issuer

ROOT = Path(__file__).parents[3]
KERNELGATE = Path(sys.executable).with_name("kernelgate")


class Actions:
    """What GitHub Actions gives a job: an endpoint that hands out the job's own token."""

    def __init__(self, issuer: Issuer) -> None:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                audience = parse_qs(urlsplit(self.path).query)["audience"][0]
                right = self.headers["Authorization"] == "Bearer of the job"
                body = json.dumps({"value": issuer.token(aud=audience)} if right else {}).encode()
                self.send_response(200 if right else 401)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/token?api-version=2.0"
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()

    def stop(self) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


class Job:
    """A checkout at a commit, in a job of an event."""

    def __init__(self, service: Running, actions: Actions, git: GitRepo, folder: Path) -> None:
        self.service, self.actions, self.git, self.folder = service, actions, git, folder
        self.node = service.api(service.token(Scope.WORKER, node="node-1"))
        self.admin = service.api(service.token(Scope.ADMIN))
        self.summary = folder / "summary.md"
        self.summary.touch()

    def start(
        self,
        head: str,
        *,
        event: str = "pull_request",
        payload: dict[str, Any] | None = None,
        command: tuple[str, ...] = (str(KERNELGATE), "ci"),
        **environ: str | None,
    ) -> subprocess.Popen[str]:
        checkout = self.folder / "checkout"
        if not checkout.exists():
            subprocess.run(["git", "clone", "--quiet", "--no-checkout", self.git.path, checkout], check=True)
        subprocess.run(["git", "-C", checkout, "fetch", "--quiet", "origin", head], check=True)
        subprocess.run(["git", "-C", checkout, "update-ref", "--no-deref", "HEAD", head], check=True)
        event_file = self.folder / "event.json"
        event_file.write_text(json.dumps(payload or {}))
        plain = {name: value for name, value in os.environ.items() if not name.startswith(("GITHUB", "KERNELGATE"))}
        job: dict[str, str | None] = {
            "KERNELGATE_URL": self.service.url,
            "GITHUB_EVENT_NAME": event,
            "GITHUB_EVENT_PATH": str(event_file),
            "GITHUB_HEAD_REF": "topic",
            "GITHUB_STEP_SUMMARY": str(self.summary),
            "ACTIONS_ID_TOKEN_REQUEST_URL": self.actions.url,
            "ACTIONS_ID_TOKEN_REQUEST_TOKEN": "of the job",
            **environ,
        }
        present = {name: value for name, value in job.items() if value is not None}
        return subprocess.Popen(
            command,
            cwd=checkout,
            env={**plain, **present, "KERNELGATE_HOME": str(self.folder / "home")},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def queued(self) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = self.admin.ok("GET", "/evaluations", params={"state": "queued"})["items"]
        return items

    def answer(self, ratio: float, *, once: Callable[[], object] = lambda: None) -> None:
        """Be the node for one evaluation, which goes on until `once` has returned."""
        wait_for(self.queued, seconds=60)
        job = self.node.claim(self.queued()[-1]["id"])
        self.node.beat(job, {"stage": "measure", "done": 1, "total": 2, "detail": "pair 3"})
        once()
        self.node.finish(job, times(ratio)(job))


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    try:
        output, _ = process.communicate(timeout=120)
    finally:
        process.kill()
        process.wait()
    return process.returncode, output


def pull(base: str) -> dict[str, Any]:
    return {"pull_request": {"base": {"sha": base}}}


@pytest.fixture
def job(backends: Backends, tmp_path: Path) -> Iterator[Job]:
    backend = backends.get("sqlite")
    backend.empty()
    issuer = Issuer()
    actions = Actions(issuer)
    settings = backend.settings.model_copy(update={"github_oidc_allow": (RULE,)})
    service = Running(settings, backend.publisher)
    settings = settings.model_copy(update={"github_oidc_audience": service.url})
    service.app.state.settings = settings
    object.__setattr__(service.services, "settings", settings)
    service.app.state.job_keys = Keys(settings, transport=httpx.MockTransport(issuer))
    with backend.database.write() as session:
        session.add(Project(slug="acme--kernels"))
    service.start()
    job = Job(service, actions, GitRepo(tmp_path / "origin.git"), tmp_path)
    bases = parse_suite(suite("v1_naive", "v2_blocked"))
    path = "/projects/acme--kernels/kernels/sgemm_cpu/suite"
    job.admin.ok("PUT", path, json=bases.model_dump(mode="json"))
    yield job
    service.stop()
    actions.stop()


def test_a_slower_kernel_fails_the_job_and_the_base_is_brought_where_it_is_unknown(job: Job) -> None:
    main = job.git.commit(base_files(), branch="main")
    head = job.git.commit(revision("v1_naive", "slow"), main, branch="topic")
    process = job.start(head, payload=pull(main))
    job.answer(1.0)  # the base by itself
    assert process.stdout is not None
    log = process.stdout
    job.answer(1.05, once=lambda: next(line for line in log if "measure" in line))
    code, output = ended(process)
    assert code == 1, output
    assert "slower" in output
    summary = job.summary.read_text()
    assert summary.startswith("**")
    assert "| ✗ | sgemm\\_cpu v1 | cpu |" in summary


def test_a_good_kernel_passes_and_a_docs_only_change_asks_nobody(job: Job) -> None:
    main = job.git.commit(base_files(), branch="main")
    docs = job.git.commit({"README.md": "x"}, main, branch="docs")
    code, output = ended(job.start(docs, payload=pull(main), ACTIONS_ID_TOKEN_REQUEST_URL=None))
    assert (code, "nothing to judge" in output) == (0, True), output
    head = job.git.commit(revision("v1_naive", "better"), main, branch="topic")
    process = job.start(head, event="merge_group", payload={"merge_group": {"base_sha": main}})
    job.answer(1.0)
    job.answer(0.95)
    code, output = ended(process)
    assert code == 0, output


def test_any_other_ci_gates_with_a_stored_token(job: Job) -> None:
    main = job.git.commit(base_files(), branch="main")
    head = job.git.commit(revision("v1_naive", "slow"), main, branch="topic")
    token = job.service.token(Scope.SUBMIT)
    command = (str(KERNELGATE), "ci", "--project", "acme--kernels", "--base", main)
    elsewhere = dict.fromkeys(
        ("GITHUB_EVENT_NAME", "GITHUB_EVENT_PATH", "GITHUB_HEAD_REF", "GITHUB_STEP_SUMMARY"), None
    )
    without = dict.fromkeys(("ACTIONS_ID_TOKEN_REQUEST_URL", "ACTIONS_ID_TOKEN_REQUEST_TOKEN"), None)
    process = job.start(head, command=command, KERNELGATE_TOKEN=token, **elsewhere, **without)
    job.answer(1.0)
    job.answer(1.05)
    code, output = ended(process)
    assert (code, "slower" in output) == (1, True), output


def test_the_actions_own_steps_install_the_command_and_gate(job: Job) -> None:
    """Both steps of action.yml as a runner starts them, but for the package index: what the package needs, and what
    builds it, is the tests' own."""
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    install, step = action["runs"]["steps"]
    inputs = {name: str(each.get("default", "")) for name, each in action["inputs"].items()}
    inputs |= {"url": job.service.url, "python": sys.executable}
    context = {"github.action_path": str(ROOT), **{f"inputs.{name}": text for name, text in inputs.items()}}

    def given(step: dict[str, Any]) -> dict[str, str]:
        filled = {
            name: re.sub(r"\$\{\{ (\S+) \}\}", lambda found: context[found[1]], text)
            for name, text in step["env"].items()
        }
        return {**filled, "RUNNER_TEMP": str(job.folder), "PYTHONPATH": sysconfig.get_paths()["purelib"]}

    offline = {"PIP_NO_INDEX": "1", "PIP_NO_DEPS": "1", "PIP_NO_BUILD_ISOLATION": "0", "PIP_IGNORE_INSTALLED": "1"}
    shell = ("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c")
    ran = subprocess.run(
        (*shell, install["run"]),
        env={**os.environ, **given(install), **offline},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert list(job.folder.glob("kernelgate/lib/python3*/site-packages/cli/main.py"))
    main = job.git.commit(base_files(), branch="main")
    head = job.git.commit(revision("v1_naive", "slow"), main, branch="topic")
    process = job.start(head, command=(*shell, step["run"]), payload=pull(main), **given(step))
    job.answer(1.0)
    job.answer(1.05)
    code, output = ended(process)
    assert (code, "slower" in output) == (1, True), output
    assert job.summary.read_text().startswith("**")


def test_an_edited_suite_needs_a_maintainer(job: Job) -> None:
    main = job.git.commit(base_files(), branch="main")
    lax = suite("v1_naive", "v2_blocked", policy="allowed_slowdown = 0.5")
    head = job.git.commit({f"{KERNEL}/suite.toml": lax}, main, branch="topic")
    code, output = ended(job.start(head, event="push", payload={"before": main}))
    assert (code, "kernelgate suite push" in output) == (1, True), output
    found = job.admin.ok("GET", "/projects/acme--kernels/kernels/sgemm_cpu/suite")["suite"]
    assert found["policy"]["allowed_slowdown"] == 0.005


@pytest.mark.parametrize(
    ("environ", "said"),
    [
        ({"ACTIONS_ID_TOKEN_REQUEST_URL": None}, "fork"),
        ({"GITHUB_EVENT_NAME": "pull_request_target"}, "never gate by it"),
        ({"GITHUB_EVENT_NAME": "schedule"}, "--base origin/main"),
        ({"KERNELGATE_URL": None}, "KERNELGATE_URL is not set"),
    ],
)
def test_what_can_not_be_gated_is_said(job: Job, environ: dict[str, str | None], said: str) -> None:
    main = job.git.commit(base_files(), branch="main")
    head = job.git.commit(revision("v1_naive", "new"), main, branch="topic")
    event = environ.pop("GITHUB_EVENT_NAME", None) or "pull_request"
    code, output = ended(job.start(head, event=event, payload=pull(main), **environ))
    assert code == 2, output
    assert said in " ".join(output.split())
    assert job.queued() == []
