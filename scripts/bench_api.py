"""How long each page's requests take, over HTTP, against a database that `generate_history.py` filled.

    python scripts/bench_api.py sqlite:////tmp/large.db

Starts the service in a process of its own on a free port, asks as a browser does (one connection kept open, gzip), and
prints p50 and p95 in milliseconds: of what the client waits, and of what the service's process spends of the CPU. A
series is asked for as the Kernel page does: 5,000 revisions, thinned to about 500 points; "first asked" is an answer
that the service does not have yet.
"""

from __future__ import annotations

import argparse
import os
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
from sqlmodel import Session, col, select

from contract.api import Scope
from service.auth import issue_token
from service.database import Database
from service.models import Evaluation, Kernel, Revision
from service.settings import Settings

_WARM_UP = 5
_SERIES = "device_class=h200&case=m%3D256,n%3D256,k%3D256&metric=throughput"
_HISTORY = f"{_SERIES}&points=500"


def requests_of(session: Session) -> dict[str, str]:
    """What each page asks for first."""
    newest = session.exec(
        select(Evaluation)
        .join(Kernel, col(Kernel.id) == col(Evaluation.kernel_id))
        .where(Kernel.name == "kernel_00", Evaluation.device_class == "h200", Evaluation.outcome == "passed")
        .order_by(col(Evaluation.id).desc())
    ).first()
    if newest is None:
        sys.exit("the database has no generated history")
    first = session.exec(select(Revision).where(Revision.kernel_id == newest.kernel_id, Revision.label == "r10")).one()
    kernel = "/api/v1/projects/local/kernels/kernel_00"
    return {
        "Overview": "/api/v1/projects/local/overview",
        "Overview: newest evaluations": "/api/v1/evaluations?project=local&limit=10&brief=true",
        "Kernel": kernel,
        "Kernel: history of 500": f"{kernel}/history?{_HISTORY}",
        "Kernel: history of 5,000": f"/api/v1/projects/local/kernels/long/history?{_HISTORY}",
        "Kernel: the same, first asked": "/api/v1/projects/local/kernels/long/history"
        f"?{_HISTORY.replace('points=500', 'points={number}')}",
        "Kernel: newest 100 of 5,000": f"/api/v1/projects/local/kernels/long/history?{_HISTORY}&limit=100",
        "Kernel: changes of 5,000": f"/api/v1/projects/local/kernels/long/changes?{_SERIES}",
        "Kernel: scaling": f"{kernel}/scaling?device_class=h200&family=square",
        "Revision": f"/api/v1/revisions/{newest.revision_id}",
        "Revision: evaluation": f"/api/v1/evaluations/{newest.id}",
        "Revision: compared with its base": f"{kernel}/compare?device_class=h200&base={newest.base_id}"
        f"&head={newest.revision_id}",
        "Revision: compared with another": f"{kernel}/compare?device_class=h200&base={first.id}"
        f"&head={newest.revision_id}",
        "Regressions": "/api/v1/regressions?state=new&state=acknowledged&limit=20&brief=true",
        "Regressions: all": "/api/v1/regressions?limit=20&brief=true",
        "Nodes": "/api/v1/nodes",
        "Projects": "/api/v1/projects",
        "Kernels (command line)": "/api/v1/projects/local/kernels",
        "badge": "/badge/local/kernel_00/h200.svg",
    }


def reader(database_url: str) -> str:
    """A token for the database; its secret."""
    database = Database(Settings(database_url=database_url))
    with database.write() as session:
        secret = issue_token(session, scope=Scope.READ, note="a benchmark")[1]
    database.close()
    return secret


@contextmanager
def serving(database_url: str) -> Iterator[tuple[str, int]]:
    """(address, process id) of a service on that database."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {**os.environ, "DATABASE_URL": database_url, "KERNELGATE_PORT": str(port)}
    with subprocess.Popen(
        [sys.executable, "-m", "service"], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        url = f"http://127.0.0.1:{port}"
        try:
            for _ in range(300):
                try:
                    if httpx.get(f"{url}/healthz", trust_env=False).is_success:
                        break
                except httpx.HTTPError:
                    time.sleep(0.1)
            yield url, process.pid
        finally:
            process.terminate()


def cpu_s(process: int) -> float:
    user, system = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def measure(client: httpx.Client, path: str, *, count: int, process: int) -> tuple[float, float, float, int]:
    """(p50, p95, CPU of the service's process a request) in ms, and the answer's bytes before compression. A path with
    a `{number}` is another one each time."""
    for number in range(_WARM_UP):
        answer = client.get(path.replace("{number}", str(400 + number)))
        answer.raise_for_status()
    took, spent = [], cpu_s(process)
    for number in range(count):
        numbered = path.replace("{number}", str(500 + number))
        began = time.perf_counter()
        client.get(numbered)
        took.append((time.perf_counter() - began) * 1e3)
    spent = (cpu_s(process) - spent) / count * 1e3
    return statistics.median(took), statistics.quantiles(took, n=20)[18], spent, len(answer.content)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("database_url")
    parser.add_argument("--count", type=int, default=100, help="requests of each kind")
    given = parser.parse_args()
    secret = reader(given.database_url)
    database = Database(Settings(database_url=given.database_url))
    with database.read() as session:
        asked = requests_of(session)
    database.close()
    with serving(given.database_url) as (url, process):
        client = httpx.Client(base_url=url, headers={"Authorization": f"Bearer {secret}"}, trust_env=False, timeout=60)
        print(f"{'':34}{'p50':>8}{'p95':>8}{'CPU':>8}   ms; {'kB':>7}")
        for name, path in asked.items():
            try:
                half, most, spent, size = measure(client, path, count=given.count, process=process)
            except httpx.HTTPStatusError as error:
                print(f"{name:34}  {error.response.status_code}")
                continue
            print(f"{name:34}{half:8.1f}{most:8.1f}{spent:8.1f}       {size / 1e3:7.1f}")


if __name__ == "__main__":
    main()
