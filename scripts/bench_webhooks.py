"""Webhook answers under load: a real service over SQLite with its gate on, 50 deliveries a second.

    .venv/bin/python scripts/bench_webhooks.py --seconds 20

Prints percentiles of the time to the answer, and checks that none was lost and none kept twice. GitHub is a port that
nobody listens on, so that working the deliveries off goes on beside it, failing and being tried again.
"""

import argparse
import asyncio
import hashlib
import hmac
import json
import os
import socket
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

SECRET = "a benchmark's secret"  # noqa: S105
LIMIT_MS = 100.0


def _payload(number: int) -> bytes:
    """As large as GitHub's own (a pull request's has about 25 kB)."""
    pull = {
        "number": number,
        "state": "open",
        "body": "x" * 22_000,
        "head": {"sha": f"{number:040x}", "repo": {"id": 1}},
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


def _serve(folder: Path) -> tuple[subprocess.Popen[bytes], str]:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (folder / "app.pem").write_bytes(pem)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    environment = {
        **os.environ,
        "DATABASE_URL": f"sqlite:///{folder / 'bench.db'}",
        "KERNELGATE_STORE_URL": str(folder / "store"),
        "KERNELGATE_PORT": str(port),
        "KERNELGATE_GITHUB_APP_ID": "1",
        "KERNELGATE_GITHUB_PRIVATE_KEY": str(folder / "app.pem"),
        "KERNELGATE_GITHUB_WEBHOOK_SECRET": SECRET,
        "KERNELGATE_GITHUB_URL": "http://127.0.0.1:9",
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


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rate", type=int, default=50, help="deliveries a second")
    parser.add_argument("--seconds", type=int, default=20)
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kernelgate-bench-") as name:
        service, url = _serve(Path(name))
        try:
            times = asyncio.run(_load(url, rate=wanted.rate, seconds=wanted.seconds))
        finally:
            service.terminate()
            service.wait()
        with sqlite3.connect(Path(name) / "bench.db") as database:
            kept = database.execute("SELECT count(*) FROM github_delivery").fetchone()[0]
    cuts = statistics.quantiles(times, n=1000, method="inclusive")
    sent = len(times)
    different = sent - sent // 10
    print(
        f"{sent} deliveries at {wanted.rate}/s: p50 {cuts[499]:.1f} ms, p99 {cuts[989]:.1f} ms, max {max(times):.1f} ms"
    )
    print(f"{kept} kept of {different} different ones")
    return 0 if cuts[989] < LIMIT_MS and kept == different else 1


if __name__ == "__main__":
    sys.exit(main())
