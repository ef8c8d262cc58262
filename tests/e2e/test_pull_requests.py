"""A pull request's whole way with everything real but GitHub: service, broker, worker, compiler, measurements. GitHub
is a fake that holds every request to GitHub's own description, serves git's own trees, and fails in between."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from contract.api import Scope
from service.auth import issue_token
from service.database import Database
from tests.e2e import revisions
from tests.e2e.stack import LIMIT_S, Stack, until
from tests.service.client import Api
from tests.service.github.fake import APP_ID, FakeGithub, Trouble
from tests.service.github.gated import CONFIG, SECRET, Gated

KERNEL = "kernels/small_gemm"
SUITE = """kernel = "small_gemm"
operator = "gemm"
dtype = "fp32"
device_classes = ["cpu"]
revisions = ["v1_plain"]
[[cases]]
dims = { m = 48, n = 48, k = 48 }
[policy]
allowed_slowdown = 0.3
"""


def over_and_over(times: int) -> str:
    """The plain product, `times` times: no machine is too noisy to tell twenty-fold."""
    return revisions.source(f"for (int again = 1; again < {times}; ++again) gemm(call, m);")


BASE, SLOW, BETTER = over_and_over(20), over_and_over(400), over_and_over(300)
# Once, and along the rows of B.
BEST = """#include <algorithm>

#include "kernelgate.h"

extern "C" int kernelgate_run(const kg_call* call) {
  const auto* __restrict a = static_cast<const float*>(call->in[0].data);
  const auto* __restrict b = static_cast<const float*>(call->in[1].data);
  auto* __restrict c = static_cast<float*>(call->out[0].data);
  const int64_t m = call->in[0].shape[0], k = call->in[0].shape[1], n = call->in[1].shape[1];
  std::fill_n(c, m * n, 0.0f);
  for (int64_t i = 0; i < m; ++i)
    for (int64_t p = 0; p < k; ++p)
      for (int64_t j = 0; j < n; ++j) c[i * n + j] += a[i * k + p] * b[p * n + j];
  return 0;
}
"""


@dataclass(frozen=True)
class Processes:
    """The service of a stack, as the gate's tests know it."""

    stack: Stack

    @property
    def url(self) -> str:
        return self.stack.url

    @property
    def database(self) -> Database:
        return self.stack.database

    def token(self, scope: Scope, **bound: str) -> str:
        with self.stack.database.write() as session:
            return issue_token(session, scope=scope, **bound)[1]

    def api(self, token: str | None = None) -> Api:
        assert token is not None
        return self.stack.client(token)


@pytest.fixture
def stack(tmp_path: Path, github_url: str, key: tuple[Path, bytes]) -> Iterator[Stack]:
    folder = tmp_path / "stack"
    folder.mkdir()
    service = {
        "KERNELGATE_GITHUB_APP_ID": str(APP_ID),
        "KERNELGATE_GITHUB_PRIVATE_KEY": str(key[0]),
        "KERNELGATE_GITHUB_WEBHOOK_SECRET": SECRET,
        "KERNELGATE_GITHUB_URL": github_url,
        "KERNELGATE_GITHUB_EVERY_S": "0.1",
        "KERNELGATE_GITHUB_PROGRESS_S": "0.2",
        "KERNELGATE_GITHUB_PAUSE_S": "0.1",
    }
    stack = Stack(folder, worker={"KERNELGATE_MAX_PROCESSES": "16"}, service=service)
    stack.start()
    yield stack
    stack.stop()


@pytest.fixture
def gated(stack: Stack, github: FakeGithub) -> Gated:
    return Gated(Processes(stack), github, github.repositories["acme/kernels"], patience_s=LIMIT_S)


def files(source: str) -> dict[str, str | bytes | None]:
    return {f"{KERNEL}/v1_plain/{name}": text for name, text in revisions.files(source).items()}


@pytest.mark.alone
def test_from_opened_to_merged_and_a_forks_way_while_github_fails_in_between(stack: Stack, gated: Gated) -> None:
    base = {".kernelgate.toml": CONFIG, "README.md": "kernels\n", f"{KERNEL}/suite.toml": SUITE}
    main = gated.git.commit({**base, **files(BASE)}, branch="main")
    slow = _opened_and_slower(stack, gated, main)
    best = _a_newer_push_cancels_and_passes(stack, gated, slow)
    merged = _the_merge_group_passes(gated, main, best)
    _a_fork_waits_for_a_person(stack, gated, merged)
    assert [trouble for trouble in gated.github.troubles if trouble.times] == []


def _opened_and_slower(stack: Stack, gated: Gated, main: str) -> str:
    slow = gated.git.commit(files(SLOW), main)
    gated.github.troubles += [
        Trouble(at="/access_tokens", status=500),
        Trouble(at="POST /repos/acme/kernels/check-runs", status=500),
        Trouble(at="/compare/", status=403, headers=_used_up()),
        Trouble(at="/git/blobs/", status=500),
        Trouble(at="PATCH /repos/acme/kernels/check-runs/", status=422),
    ]
    stack.hold("measure")
    gated.push_to(41, slow)
    until(lambda: stack.reached("measure"), "the worker measures")
    until(lambda: "measure" in gated.check(slow)["output"]["summary"], "the check shows progress")
    stack.release("measure")
    check = gated.concluded(slow, "failure")
    assert [step[0] for step in check["history"]] == ["queued", "in_progress", "completed"]
    [row] = _table(check)
    assert row[:5] == ["✗", "small\\_gemm v1", "cpu", "`m=48,n=48,k=48`", "v1"]
    assert float(row[5].partition(" ")[0]) > 2
    assert "slower" in check["output"]["title"]
    assert {action["identifier"] for action in check["actions"]} == {"again", "accept"}
    return slow


def _a_newer_push_cancels_and_passes(stack: Stack, gated: Gated, slow: str) -> str:
    gated.github.troubles += [
        Trouble(at="PATCH /repos/acme/kernels/check-runs/", status=403, headers=_used_up()),
        Trouble(at="/git/trees/", status=500),
    ]
    better = gated.git.commit(files(BETTER), slow)
    stack.hold("measure")
    gated.push_to(41, better, action="synchronize")
    until(lambda: stack.reached("measure"), "the worker measures")
    best = gated.git.commit(files(BEST), better)
    gated.push_to(41, best, action="synchronize")
    gated.concluded(better, "cancelled")
    until(lambda: _superseded(gated), "the worker gives it up")
    stack.release("measure")
    check = gated.concluded(best, "success")
    [row] = _table(check)
    assert row[0] == "✓", row
    assert float(row[5].partition(" ")[0]) < 1
    [cancelled] = _superseded(gated)
    assert (cancelled["reason"], stack.ended(cancelled["id"])["outcome"]) == ("superseded", "cancelled")
    return best


def _the_merge_group_passes(gated: Gated, main: str, best: str) -> str:
    """What was answered is not asked again; a change that only the queue brings together would be."""
    gated.github.troubles.append(Trouble(at="POST /repos/acme/kernels/check-runs", status=502, after=True))
    before = len(_evaluations(gated))
    ahead = gated.git.commit({"README.md": "kernels, and more words\n"}, main, branch="main")
    merged = gated.git.commit({f"{KERNEL}/v1_plain/gemm.cpp": BEST}, ahead, best)
    gated.queue(merged, ahead)
    check = gated.concluded(merged, "success")
    assert check["history"][0] == ("queued", None)
    assert f"Compared with `{ahead[:12]}`" in check["output"]["summary"]
    assert len(gated.github.checks_of(merged)) == 1
    assert len(_evaluations(gated)) == before
    return merged


def _a_fork_waits_for_a_person(stack: Stack, gated: Gated, merged: str) -> None:
    gated.github.troubles.append(Trouble(at="/collaborators/", status=500))
    gated.git.git("update-ref", "refs/heads/main", merged)
    bundles = set((stack.folder / "store").rglob("*"))
    before = len(_evaluations(gated))
    head = gated.git.commit(files(f"// of a fork\n{BASE}"), merged)
    gated.push_to(42, head, fork=True)
    gated.concluded(head, "action_required")
    assert gated.settled(gated.comment(42, "/kernelgate run", who="stranger")) == "refused"
    assert len(_evaluations(gated)) == before
    assert set((stack.folder / "store").rglob("*")) == bundles

    gated.github.troubles.append(Trouble(at="PATCH /repos/acme/kernels/check-runs/", status=500))
    assert gated.settled(gated.comment(42, f"/kernelgate run {head[:12]}")) == "done"
    gated.concluded(head, "failure")
    later = gated.git.commit(files(f"// of a fork\n{BEST}"), head)
    gated.push_to(42, later, action="synchronize", fork=True)
    gated.concluded(later, "action_required")
    assert len(_evaluations(gated)) == before + 1


def _evaluations(gated: Gated) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = gated.api.ok("GET", "/evaluations", params={"limit": 100})["items"]
    return items


def _superseded(gated: Gated) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = gated.api.ok("GET", "/evaluations", params={"state": "cancelled"})["items"]
    return items


def _table(check: dict[str, Any]) -> list[list[str]]:
    """The cells of each row of the summary's table, below its head."""
    lines = [line for line in check["output"]["summary"].splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[1:]]


def _used_up() -> dict[str, str]:
    """The headers of a used-up rate limit that is there again in a moment."""
    reset = int(time.time()) + 1
    return {"X-RateLimit-Limit": "5000", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(reset)}
