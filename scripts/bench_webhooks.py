"""Webhook answers under load: a real service over SQLite with its gate on, 50 deliveries a second.

    .venv/bin/python -m scripts.bench_webhooks --seconds 20

Prints percentiles of the time to the answer. Each delivery opens a pull request on a GitHub beside it: checks are made,
trees read, evaluations queued, while deliveries come and until all are worked off. Then none may be lost or doubled:
one delivery kept, one check made for each. `--away`: GitHub is a port that nobody listens on, so that working off
fails and is tried again.
"""

import argparse
import asyncio
import hashlib
import hmac
import json
import multiprocessing
import os
import socket
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import httpx
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from scripts import bench_github

SECRET = "a benchmark's secret"  # noqa: S105
LIMIT_MS = 100.0
WORKED_OFF_IN_S = 600
NOBODY = "http://127.0.0.1:9"


def _payload(number: int) -> bytes:
    """As large as GitHub's own (a pull request's has about 25 kB)."""
    pull = {
        "number": number,
        "state": "open",
        "body": "x" * 22_000,
        "head": {"sha": bench_github.head_of(number), "repo": {"id": 1}},
        "base": {"ref": "main", "sha": "0" * 40, "repo": {"id": 1}},
    }
    repository = {"id": 1, "full_name": "acme/kernels", "default_branch": "main"}
    whole = {
        "action": "opened",
        "number": number,
        "pull_request": pull,
        "repository": repository,
        "installation": {"id": 1},
    }
    return json.dumps(whole).encode()


async def _deliver(client: httpx.AsyncClient, number: int, delivery: str) -> float:
    """Milliseconds to the answer."""
    body = _payload(number)
    headers = {
        "X-GitHub-Event": "pull_request",
        "X-GitHub-Delivery": delivery,
        "X-Hub-Signature-256": "sha256=" + hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest(),
        "Content-Type": "application/json",
    }
    start = time.perf_counter()
    answer = await client.post("/webhooks/github", content=body, headers=headers)
    elapsed_ms = 1000.0 * (time.perf_counter() - start)
    answer.raise_for_status()
    return elapsed_ms


async def _load(url: str, *, rate: int, seconds: int) -> list[float]:
    """Every tenth delivery comes twice, as GitHub's do now and then."""
    async with httpx.AsyncClient(base_url=url, timeout=30) as client:
        tasks = []
        begin = time.perf_counter()
        for number in range(rate * seconds):
            await asyncio.sleep(max(0.0, begin + number / rate - time.perf_counter()))
            tasks.append(asyncio.create_task(_deliver(client, number, f"bench-{number - number % 10 // 9}")))
        return list(await asyncio.gather(*tasks))


def _make_key(folder: Path) -> bytes:
    """The App's private key as a file; the public one."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (folder / "app.pem").write_bytes(pem)
    return key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)


def _serve_github(public_key: bytes) -> tuple[multiprocessing.Process, str]:
    listening = socket.create_server(("127.0.0.1", 0))
    # asyncio sets it only where the protocol is named; without it each answer is 40 ms late.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    github = multiprocessing.Process(target=bench_github.serve, args=(listening, public_key))
    github.start()
    return github, f"http://127.0.0.1:{listening.getsockname()[1]}"


def _serve(folder: Path, github_url: str) -> tuple[subprocess.Popen[bytes], str]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    environment = {
        **os.environ,
        "DATABASE_URL": f"sqlite:///{folder / 'bench.db'}",
        "KERNELGATE_STORE_URL": str(folder / "store"),
        "KERNELGATE_PORT": str(port),
        "KERNELGATE_GITHUB_APP_ID": str(bench_github.APP_ID),
        "KERNELGATE_GITHUB_PRIVATE_KEY": str(folder / "app.pem"),
        "KERNELGATE_GITHUB_WEBHOOK_SECRET": SECRET,
        "KERNELGATE_GITHUB_URL": github_url,
    }
    log = (folder / "service.log").open("wb")
    service = subprocess.Popen([sys.executable, "-m", "service"], env=environment, stdout=log, stderr=log)
    url = f"http://127.0.0.1:{port}"
    for _ in range(600):
        try:
            httpx.get(f"{url}/healthz").raise_for_status()
        except httpx.HTTPError:
            time.sleep(0.1)
        else:
            return service, url
    raise SystemExit((folder / "service.log").read_text())


def _work_off(database: Path) -> float:
    """Seconds until no delivery and no check waits any more."""
    start = time.monotonic()
    waiting = 1
    while waiting and time.monotonic() - start < WORKED_OFF_IN_S:
        time.sleep(0.2)
        waiting = _count(database, "github_delivery WHERE state = 'due'")
        waiting += _count(database, "github_gate WHERE sent IS NULL")
        # With evaluations it goes on waiting: there is no node.
        waiting += _count(
            database, "github_gate WHERE state <> 'done' AND id NOT IN (SELECT gate_id FROM github_gate_evaluation)"
        )
    return time.monotonic() - start


def _count(database: Path, what: str) -> int:
    with sqlite3.connect(database, timeout=30) as connection:
        return int(connection.execute(f"SELECT count(*) FROM {what}").fetchone()[0])  # noqa: S608


def _is_right(checks: dict[str, list[str]], database: Path, different: int) -> bool:
    """One check for each commit: through where it touches no kernel, waiting where it does."""
    ends = Counter(" and ".join(each) for each in checks.values())
    queued = _count(database, "evaluation")
    said = ", ".join(f"{count} {name}" for name, count in sorted(ends.items()))
    print(f"checks: {said}; {queued} evaluations queued")
    touched = sum(int(sha, 16) % bench_github.CHANGES_A_KERNEL == 0 for sha in checks)
    return ends == Counter(success=different - touched, queued=touched) and queued == touched


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rate", type=int, default=50, help="deliveries a second")
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--away", action="store_true", help="GitHub doesn't answer")
    wanted = parser.parse_args()
    sent = wanted.rate * wanted.seconds
    different = sent - sent // 10
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="kernelgate-bench-") as name:
        folder, database = Path(name), Path(name) / "bench.db"
        github, github_url = _serve_github(_make_key(folder))
        service, url = _serve(folder, NOBODY if wanted.away else github_url)
        try:
            times = asyncio.run(_load(url, rate=wanted.rate, seconds=wanted.seconds))
            cuts = statistics.quantiles(times, n=1000, method="inclusive")
            print(f"{sent} deliveries at {wanted.rate}/s, load of the machine before {load:.1f}:")
            print(f"p50 {cuts[499]:.1f} ms, p99 {cuts[989]:.1f} ms, max {max(times):.1f} ms")
            right = True
            if not wanted.away:
                print(f"all worked off {_work_off(database):.1f} s after the last one")
                right = _is_right(httpx.get(f"{github_url}/checks").json(), database, different)
        finally:
            service.terminate()
            service.wait()
            github.terminate()
            github.join()
        kept = _count(database, "github_delivery")
    print(f"{kept} kept of {different} different ones")
    return 0 if cuts[989] < LIMIT_MS and right and kept == different else 1


if __name__ == "__main__":
    sys.exit(main())
