"""What tests say to the service, in the words of the API."""

from datetime import UTC, datetime
from typing import Any

import httpx

from contract.job import Job
from contract.report import CaseResult, Check, Metric, Report, StageTime
from contract.samples import Pair, Round

CASES = ("m=64,n=64,k=64", "m=128,n=128,k=128")
SUITE: dict[str, Any] = {
    "kernel": "sgemm_cpu",
    "operator": "gemm",
    "dtype": "fp32",
    "device_classes": ["cpu"],
    "revisions": ["v1_naive", "v2_blocked", "v3_packed"],
    "cases": [{"dims": {"m": 64, "n": 64, "k": 64}}, {"dims": {"m": 128, "n": 128, "k": 128}}],
}


class Api:
    """An HTTP client of /api/v1 that knows one kernel's way through it."""

    def __init__(self, http: httpx.Client) -> None:
        self.http = http

    def ok(self, method: str, path: str, **options: Any) -> Any:
        response = self.http.request(method, path, **options)
        assert response.is_success, f"{method} {path}: {response.status_code} {response.text}"
        return response.json() if response.content else None

    def problem(self, method: str, path: str, **options: Any) -> dict[str, Any]:
        """The problem's fields, its type shortened to the name."""
        response = self.http.request(method, path, **options)
        assert response.is_error, f"{method} {path}: {response.status_code} {response.text}"
        assert response.headers["content-type"] == "application/problem+json"
        problem: dict[str, Any] = response.json()
        assert problem["status"] == response.status_code
        problem["type"] = problem["type"].removeprefix("urn:kernelgate:problem:")
        return problem

    def bring_suite(self, **changes: Any) -> Any:
        suite = {**SUITE, **changes}
        return self.ok("PUT", f"/projects/local/kernels/{suite['kernel']}/suite", json=suite)

    def submit(self, label: str = "v1", **changes: Any) -> Any:
        return self.ok("POST", "/revisions", json=submission(label, **changes))

    def evaluation(self, evaluation_id: str, **query: Any) -> Any:
        return self.ok("GET", f"/evaluations/{evaluation_id}", params=query)

    def claim(self, evaluation_id: str, **changes: Any) -> Job:
        return Job.model_validate(self.ok("POST", f"/evaluations/{evaluation_id}/claim", json=claim(**changes)))

    def report(self, job: Job, report: Report) -> httpx.Response:
        return self.http.post(
            f"/evaluations/{job.evaluation_id}/report",
            content=report.model_dump_json(),
            headers={"X-Kernelgate-Lease": job.lease_token, "Content-Type": "application/json"},
        )

    def finish(self, job: Job, report: Report) -> None:
        response = self.report(job, report)
        assert response.status_code == 204, response.text

    def beat(self, job: Job, *progress: dict[str, Any], **options: Any) -> Any:
        return self.ok(
            "POST",
            f"/evaluations/{job.evaluation_id}/heartbeat",
            json={**claim(**options), "progress": list(progress)},
            headers={"X-Kernelgate-Lease": job.lease_token},
        )


def submission(label: str = "v1", *, source: str = "", **changes: Any) -> dict[str, Any]:
    """The body of POST /revisions. `source` tells two bundles of one label apart."""
    manifest = f'label = "{label}"\nsummary = "the {label} one"\nlanguage = "cpp"\nsource = "sgemm.cpp"\n'
    files = {"kernel.toml": manifest, "sgemm.cpp": f"// {label} {source}\n"}
    return {"project": "local", "kernel": "sgemm_cpu", "files": files, **changes}


def node_info(name: str = "node-1", device_class: str = "cpu", **changes: Any) -> dict[str, Any]:
    return {"name": name, "device_class": device_class, "host": "here", "device": "a CPU", **changes}


def claim(**changes: Any) -> dict[str, Any]:
    return {"node": node_info(**changes)}


def pairs(ratio: float, *, count: int = 8, base_us: float = 100.0, name: str | None = None) -> tuple[Pair, ...]:
    """`count` pairs of fresh processes, two rounds each, whose times differ by `ratio`, spread over 0.04 %."""
    made = []
    for place in range(count):
        wobble = 1.0 + 0.0002 * ((place % 5) - 2)
        one = Round(base=(base_us, base_us * 1.0001), head=(base_us * ratio * wobble, base_us * ratio * wobble))
        named = {"base_process": f"{name}b{place}", "head_process": f"{name}h{place}"} if name else {}
        made.append(Pair(rounds=(one, one), **named))
    return tuple(made)


def case_result(case: str, *, ratio: float | None = None, count: int = 8, **changes: Any) -> CaseResult:
    """Measured at 100 us, and compared where a ratio is given."""
    values: dict[str, Any] = {
        "case": case,
        "metrics": (
            Metric(name="time", unit="us", value=100.0, low=99.0, high=101.0, better="lower", samples=(99.0, 101.0)),
            Metric(name="throughput", unit="GFLOPS", value=5.2, better="higher"),
        ),
        "baseline": "torch 2.13.0, MKL",
        "pairs": pairs(ratio, count=count) if ratio is not None else (),
        "held_s": 1.5,
        **changes,
    }
    return CaseResult(**values)


def report(*cases: CaseResult, **changes: Any) -> Report:
    """Everything right; by default both cases measured and nothing to compare with."""
    moment = datetime.now(UTC)
    values: dict[str, Any] = {
        "protocol_version": 1,
        "device_class": "cpu",
        "stages": (StageTime(stage="build", started_at=moment, ended_at=moment, cached=True),),
        "checks": (Check(case=CASES[0], family="normal", passed=True, error=1e-7, bound=1e-5, of_bound=0.01),),
        "cases": cases or tuple(case_result(case) for case in CASES),
        "log": "compiled\n",
        **changes,
    }
    return Report(**values)
