"""A repository behind the gate, in the words of a test."""

import hashlib
import hmac
import json
import uuid
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

import httpx

from contract.api import Scope
from contract.job import Job
from contract.report import Report
from service.database import Database
from tests.service.client import CASES, Api, case_result, report
from tests.service.conftest import wait_for
from tests.service.github.fake import FakeGithub, FakeRepository

SECRET = "it's a secret to everybody"
KERNEL = "kernels/sgemm_cpu"
CONFIG = 'kernels = ["kernels"]\n'

Judge = Callable[[Job], Report]


def suite(*revisions: str, kernel: str = "sgemm_cpu", policy: str = "", cases: tuple[int, ...] = (64, 128)) -> str:
    listed = ", ".join(f'"{name}"' for name in revisions)
    text = f'kernel = "{kernel}"\noperator = "gemm"\ndtype = "fp32"\ndevice_classes = ["cpu"]\nrevisions = [{listed}]\n'
    text += "".join(f"[[cases]]\ndims = {{ m = {size}, n = {size}, k = {size} }}\n" for size in cases)
    return f"{text}[policy]\n{policy}\n"


def revision(
    folder: str, source: str = "", *, kernel: str = KERNEL, shared: bool = False
) -> dict[str, str | bytes | None]:
    """The files of one revision's folder; its label is the folder's name up to the first underscore."""
    label = folder.partition("_")[0]
    manifest = f'label = "{label}"\nsummary = "the {label} one"\nlanguage = "cpp"\nsource = "sgemm.cpp"\n'
    if shared:
        manifest += 'shared = ["common.h"]\n'
    return {f"{kernel}/{folder}/kernel.toml": manifest, f"{kernel}/{folder}/sgemm.cpp": f"// {label} {source}\n"}


def base_files() -> dict[str, str | bytes | None]:
    """A repository with one kernel of two revisions, v2 the current one."""
    return {
        ".kernelgate.toml": CONFIG,
        "README.md": "kernels\n",
        f"{KERNEL}/suite.toml": suite("v1_naive", "v2_blocked"),
        f"{KERNEL}/common.h": "// common\n",
        **revision("v1_naive"),
        **revision("v2_blocked", shared=True),
    }


def times(ratio: float | None, *, count: int = 8) -> Judge:
    """Both cases measured, and where there is a base the head takes `ratio` times as long, in `count` pairs."""
    return lambda job: report(*(case_result(case, ratio=ratio if job.base else None, count=count) for case in CASES))


def sign(body: bytes, secret: str = SECRET) -> str:
    return "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


class Service(Protocol):
    """The service as a thread of the tests, or as a process of its own."""

    @property
    def url(self) -> str: ...
    @property
    def database(self) -> Database: ...
    def token(self, scope: Scope, **bound: str) -> str: ...
    def api(self, token: str | None = None) -> Api: ...


class Gated:
    """`patience_s`: how long what must happen may take."""

    def __init__(
        self, running: Service, github: FakeGithub, repository: FakeRepository, *, patience_s: float = 20.0
    ) -> None:
        self.running = running
        self.patience_s = patience_s
        self.github = github
        self.repository = repository
        self.git = repository.git
        self.api = running.api(running.token(Scope.ADMIN))
        self.node = running.api(running.token(Scope.WORKER, node="node-1"))
        self.http = self.api.http

    def wait_for(self, condition: Callable[[], object]) -> None:
        wait_for(condition, seconds=self.patience_s)

    def deliver(
        self,
        event: str,
        payload: Mapping[str, Any],
        *,
        delivery: str | None = None,
        signature: str | None = None,
    ) -> httpx.Response:
        body = json.dumps(payload).encode()
        headers = {
            "Content-Type": "application/json",
            "X-GitHub-Event": event,
            "X-GitHub-Delivery": delivery or str(uuid.uuid4()),
            "X-Hub-Signature-256": sign(body) if signature is None else signature,
        }
        return self.http.post(f"{self.running.url}/webhooks/github", content=body, headers=headers)

    def payload(self, *, sender: str = "author", **fields: Any) -> dict[str, Any]:
        return {
            "repository": {
                "id": self.repository.id,
                "full_name": self.repository.full_name,
                "default_branch": "main",
            },
            "installation": {"id": self.repository.installation},
            "sender": {"login": sender},
            **fields,
        }

    def pull(self, number: int, head: str, *, base: str = "main", fork: bool = False) -> dict[str, Any]:
        """The pull request as GitHub has it from now on."""
        head_repository = 77 if fork else self.repository.id
        self.repository.pulls[number] = {
            "number": number,
            "state": "open",
            "head": {"sha": head, "ref": "topic", "repo": {"id": head_repository}},
            "base": {"ref": base, "sha": "0" * 40, "repo": {"id": self.repository.id}},
        }
        return self.repository.pulls[number]

    def push_to(
        self, number: int, head: str, *, action: str = "opened", base: str = "main", fork: bool = False, **fields: Any
    ) -> None:
        pull = self.pull(number, head, base=base, fork=fork)
        answer = self.deliver(
            "pull_request", self.payload(action=action, number=number, pull_request={**pull, **fields})
        )
        assert answer.status_code == 202, answer.text

    def queue(self, head: str, base: str, *, action: str = "checks_requested") -> None:
        group = {"head_sha": head, "base_sha": base, "base_ref": "refs/heads/main", "head_ref": "refs/heads/gh/q"}
        assert self.deliver("merge_group", self.payload(action=action, merge_group=group)).status_code == 202

    def comment(self, number: int, text: str, *, who: str = "maintainer") -> str:
        # GitHub tells whole seconds: this one is after whatever was just pushed.
        moment = (datetime.now(UTC) + timedelta(seconds=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
        delivery = str(uuid.uuid4())
        payload = self.payload(
            action="created",
            sender=who,
            issue={"number": number, "pull_request": {}},
            comment={"body": text, "user": {"login": who}, "created_at": moment},
        )
        assert self.deliver("issue_comment", payload, delivery=delivery).status_code == 202
        return delivery

    def press(self, head: str, identifier: str, *, who: str = "maintainer") -> str:
        check = self.check(head)
        delivery = str(uuid.uuid4())
        payload = self.payload(
            action="requested_action",
            sender=who,
            check_run={"id": check["id"], "head_sha": head, "pull_requests": []},
            requested_action={"identifier": identifier},
        )
        assert self.deliver("check_run", payload, delivery=delivery).status_code == 202
        return delivery

    def check(self, head: str) -> dict[str, Any]:
        """The newest check run of a commit."""
        self.wait_for(lambda: self.github.checks_of(head))
        return self.github.checks_of(head)[-1]

    def concluded(self, head: str, conclusion: str) -> dict[str, Any]:
        """The newest check run of the commit, once it has this conclusion."""

        def is_there() -> bool:
            checks = self.github.checks_of(head)
            return bool(checks) and checks[-1].get("conclusion") == conclusion and checks[-1]["status"] == "completed"

        try:
            self.wait_for(is_there)
        except AssertionError:
            raise AssertionError(f"no {conclusion} but {self.github.checks_of(head)}") from None
        return self.check(head)

    def queued(self) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = self.api.ok("GET", "/evaluations", params={"state": "queued"})["items"]
        return list(reversed(items))

    def wait_queued(self, count: int = 1) -> list[dict[str, Any]]:
        self.wait_for(lambda: len(self.queued()) == count)
        return self.queued()

    def measure(self, judge: Judge, *, count: int = 1) -> list[Job]:
        """Be the node: take what is queued, and report."""
        jobs = [self.node.claim(each["id"]) for each in self.wait_queued(count)]
        for job in jobs:
            self.node.finish(job, judge(job))
        return jobs

    def delivery_state(self, identifier: str) -> str:
        from service.github.tables import GithubDelivery  # noqa: PLC0415

        with self.running.database.read() as session:
            row = session.get(GithubDelivery, identifier)
            return row.state if row else "unknown"

    def settled(self, identifier: str) -> str:
        """How a delivery ended."""
        self.wait_for(lambda: self.delivery_state(identifier) not in {"due", "unknown"})
        return self.delivery_state(identifier)
