"""A service that answers from memory: contract models in, contract models out."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx

from cli.client import Client
from contract.api import BaseRef, EvaluationOut, RevisionIn, RevisionOut, SuiteOut
from contract.bundle import digest
from contract.devices import DeviceClass
from contract.outcomes import Outcome, Stage, State, Verdict
from contract.report import CaseResult, Check, Environment, Metric, StageTime
from contract.suite import Suite
from contract.verdicts import Judgement
from contract.views import NodeDetail

AT = datetime(2026, 12, 1, tzinfo=UTC)
URL = "http://stub"


def metric(name: str, value: float, unit: str, spread: float = 0.001) -> Metric:
    return Metric(name=name, unit=unit, value=value, low=value * (1 - spread), high=value * (1 + spread))


def case_result(case: str, verdict: Verdict = Verdict.SAME, ratio: float = 1.0002) -> CaseResult:
    return CaseResult(
        case=case,
        metrics=(
            metric("time", 312.0, "us"),
            metric("throughput", 440.5, "TFLOPS"),
            metric("throughput_over_baseline", 0.57, "1", 0.01),
        ),
        baseline="cuBLAS 13.1",
        judgement=Judgement(
            verdict=verdict,
            ratio=ratio,
            interval=(ratio - 0.0008, ratio + 0.0008),
            smallest_detectable=0.006,
            reason="inside",
        ),
        held_s=5.7,
    )


def evaluation(**changes: Any) -> EvaluationOut:
    """A finished evaluation of hgemm v4 against v3 on h200."""
    stages = tuple(
        StageTime(stage=stage, started_at=AT, ended_at=AT + timedelta(seconds=2.7))
        for stage in (Stage.BUILD, Stage.VERIFY, Stage.MEASURE)
    )
    known = EvaluationOut(
        id="ev_1",
        project="local",
        kernel="hgemm",
        revision=BaseRef(id="rev_4", label="v4", digest="4" * 64),
        base=BaseRef(id="rev_3", label="v3", digest="3" * 64),
        device_class=DeviceClass.H200,
        suite_digest="5" * 64,
        protocol_version=1,
        repeat=1,
        build_only=False,
        state=State.FINISHED,
        outcome=Outcome.PASSED,
        reason=None,
        message=None,
        summary="nothing is slower than allowed (0.5 %)",
        stage=None,
        progress=None,
        created_at=AT,
        leased_at=AT,
        finished_at=AT,
        attempts=(),
        stages=stages,
        environment=Environment(device="NVIDIA H200", driver="580.159"),
        statics=(),
        checks=(Check(case="m=4096,n=4096,k=4096", family="heavy-tailed", passed=True, of_bound=0.41),),
        cases=(case_result("m=4096,n=4096,k=4096"),),
    )
    return known.model_copy(update=changes)


def queued(**changes: Any) -> EvaluationOut:
    nothing = {
        "state": State.QUEUED,
        "outcome": None,
        "summary": None,
        "stages": (),
        "checks": (),
        "cases": (),
        "environment": None,
    }
    return evaluation(**{**nothing, **changes})


def node(**changes: Any) -> NodeDetail:
    """An H200 that has nothing to do."""
    known = NodeDetail(
        name="gpu-07",
        device_class=DeviceClass.H200,
        device="NVIDIA H200",
        driver="580.159",
        host="rack-3",
        state="idle",
        problem=None,
        evaluation=None,
        last_seen_at=AT,
        sandbox=True,
        work=None,
        measured_at=None,
        clocks={},
        spread=None,
        spread_floor=None,
        learnt=(),
        outages=(),
    )
    return known.model_copy(update=changes)


def problem(status: int, kind: str, detail: str, field: str | None = None) -> httpx.Response:
    content = {
        "type": f"urn:kernelgate:problem:{kind}",
        "title": kind.replace("-", " "),
        "status": status,
        "detail": detail,
        "field": field,
    }
    return httpx.Response(status, json=content, headers={"Content-Type": "application/problem+json"})


def answer(model: Any, status: int = 200) -> httpx.Response:
    content = (
        [one.model_dump(mode="json") for one in model] if isinstance(model, list) else model.model_dump(mode="json")
    )
    return httpx.Response(status, json=content)


def events(*data: str) -> httpx.Response:
    """A stream of events with ids that count from 1, and then its end."""
    return events_then(data, None)


def events_then(data: Iterable[str], error: Exception | None) -> httpx.Response:
    class Body(httpx.SyncByteStream):
        def __iter__(self) -> Any:
            for number, one in enumerate(data, 1):
                kind = "progress" if '"stage":' in one and '"id":' not in one else "state"
                yield f"id: {number}\nevent: {kind}\ndata: {one}\n\n".encode()
            if error is not None:
                raise error

    return httpx.Response(200, headers={"Content-Type": "text/event-stream"}, stream=Body())


class Stub:
    """`routes`: "METHOD /path" (below /api/v1) -> an answer, or a list of answers, the last of which stays."""

    def __init__(self, **named: Any) -> None:
        self.routes: dict[str, Any] = dict(named)
        self.requests: list[httpx.Request] = []
        self.suites: dict[str, Suite] = {}
        self.may_maintain = True
        self.posted: list[RevisionIn] = []

    def client(self) -> Client:
        return Client(URL, "kg_tok_secret", transport=httpx.MockTransport(self.handle))

    def handle(self, request: httpx.Request) -> httpx.Response:
        request.read()
        self.requests.append(request)
        name = f"{request.method} {request.url.path.removeprefix('/api/v1')}"
        planned = self.routes.get(name)
        if isinstance(planned, list):
            planned = planned.pop(0) if len(planned) > 1 else planned[0]
        if callable(planned):
            planned = planned(request)
        if isinstance(planned, Exception):
            raise planned
        if planned is not None:
            return planned if isinstance(planned, httpx.Response) else answer(planned)
        if name.endswith("/suite"):
            return self._suite(request)
        if name == "POST /revisions":
            return self._post(RevisionIn.model_validate_json(request.content))
        return problem(404, "not-found", f"{name} is not known")

    def asked(self, name: str) -> list[httpx.Request]:
        return [one for one in self.requests if f"{one.method} {one.url.path.removeprefix('/api/v1')}" == name]

    def _suite(self, request: httpx.Request) -> httpx.Response:
        kernel = request.url.path.split("/")[-2]
        if request.method == "PUT":
            if not self.may_maintain:
                return problem(403, "forbidden", "this needs a token of scope maintain, yours is submit")
            self.suites[kernel] = Suite.model_validate(json.loads(request.content))
        suite = self.suites.get(kernel)
        if suite is None:
            return problem(404, "unknown-kernel", f"local has no kernel {kernel}")
        return answer(SuiteOut(project="local", suite=suite, digest=suite.digest, created_at=AT))

    def _post(self, body: RevisionIn) -> httpx.Response:
        self.posted.append(body)
        files = {name: text.encode() for name, text in body.files.items()}
        return answer(revision(digest=digest(files), kernel=body.kernel), 201)


def revision(**changes: Any) -> RevisionOut:
    known = RevisionOut(
        id="rev_4",
        project="local",
        kernel="hgemm",
        label="v4",
        digest="4" * 64,
        summary="swizzle",
        commit=None,
        branch=None,
        mainline=True,
        origin="submitted",
        created_at=AT,
        evaluations=("ev_1",),
    )
    return known.model_copy(update=changes)


def no_pause(_: float) -> None:
    """Stands for time.sleep."""


Handler = Callable[[httpx.Request], httpx.Response]
