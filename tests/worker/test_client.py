import httpx
import pytest

from contract.bundle import pack
from contract.devices import DeviceClass
from contract.job import PROTOCOL_VERSION, Heartbeat, NodeInfo
from contract.report import Report
from tests.worker.jobs import bundle, job
from worker.client import LeaseLost, Refused, ServiceClient, Unreachable

NODE = NodeInfo(name="n", device_class=DeviceClass.CPU, host="h", device="d")
REPORT = Report(protocol_version=PROTOCOL_VERSION, device_class=DeviceClass.CPU, built_only=True)


def problem(status: int, name: str) -> httpx.Response:
    body = {"type": f"urn:kernelgate:problem:{name}", "title": name, "status": status, "detail": "why"}
    return httpx.Response(status, json=body)


class Service:
    """Answers in the order given, the last one for ever; keeps what it was asked."""

    def __init__(self, *answers: httpx.Response | Exception) -> None:
        self.answers = list(answers)
        self.asked: list[httpx.Request] = []
        self.pauses: list[float] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    @property
    def client(self) -> ServiceClient:
        return ServiceClient("http://service", "tok", transport=httpx.MockTransport(self), sleep=self.pauses.append)


def test_a_claim_that_wins_gets_the_job():
    wanted = job(bundle("gemm_cpu"))
    service = Service(httpx.Response(200, text=wanted.model_dump_json()))
    assert service.client.claim("ev_1", NODE) == wanted
    (request,) = service.asked
    assert request.url.path == "/api/v1/evaluations/ev_1/claim"
    assert request.headers["Authorization"] == "Bearer tok"


@pytest.mark.parametrize("status", [404, 409])
def test_a_claim_that_loses_gets_nothing_and_does_not_ask_again(status):
    service = Service(problem(status, "not-claimable"))
    assert service.client.claim("ev_1", NODE) is None
    assert len(service.asked) == 1


def test_a_wrong_token_is_said():
    with pytest.raises(Refused, match="unauthorised"):
        Service(problem(401, "unauthorised")).client.claim("ev_1", NODE)


@pytest.mark.parametrize("hiccup", [httpx.ConnectError("refused"), httpx.ReadTimeout("slow"), httpx.Response(503)])
def test_a_service_that_is_away_for_a_moment_is_asked_again(hiccup):
    service = Service(hiccup, hiccup, httpx.Response(204))
    service.client.report(job(bundle("gemm_cpu")), REPORT, limit_s=60)
    assert len(service.asked) == 3
    assert len(service.pauses) == 2
    assert {request.headers["X-Kernelgate-Lease"] for request in service.asked} == {"lease"}


def test_the_service_says_how_long_to_wait():
    service = Service(httpx.Response(429, headers={"Retry-After": "7"}), httpx.Response(204))
    service.client.report(job(bundle("gemm_cpu")), REPORT, limit_s=60)
    assert service.pauses == [7.0]


def test_a_service_that_stays_away_is_given_up():
    service = Service(httpx.ConnectError("refused"))
    with pytest.raises(Unreachable, match="refused"):
        service.client.report(job(bundle("gemm_cpu")), REPORT, limit_s=0.3)
    assert len(service.asked) >= 1


def test_a_lost_lease_is_told_from_other_refusals():
    with pytest.raises(LeaseLost):
        Service(problem(409, "lease-lost")).client.heartbeat(job(bundle("gemm_cpu")), Heartbeat(node=NODE))
    with pytest.raises(Refused):
        Service(problem(422, "invalid")).client.heartbeat(job(bundle("gemm_cpu")), Heartbeat(node=NODE))


def test_a_bundle_is_what_its_digest_says():
    files = bundle("gemm_cpu")
    wanted = job(files)
    answer = httpx.Response(200, content=pack(files))
    assert Service(answer).client.bundle(wanted.revision.digest, wanted) == files
    with pytest.raises(Refused, match="other files"):
        Service(answer).client.bundle("0" * 64, wanted)
