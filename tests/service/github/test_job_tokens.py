"""A GitHub Actions job comes without a secret of ours: what its own token must say, and what it gets."""

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm
from pydantic import ValidationError
from sqlmodel import select

from contract.api import Scope
from service.github.oidc import Keys
from service.models import Project, Token
from service.problems import ProblemError
from service.settings import OidcRule, Settings
from tests.service.client import SUITE, Api, submission
from tests.service.conftest import Backends, Running

ISSUER = "https://token.actions.githubusercontent.com"
AUDIENCE = "https://kernelgate.example.org"
RULE = OidcRule(repository="acme/kernels", project="acme--kernels", workflow="gate.yml")
CLAIMS: dict[str, Any] = {
    "iss": ISSUER,
    "aud": AUDIENCE,
    "repository": "acme/kernels",
    "ref": "refs/pull/7/merge",
    "event_name": "pull_request",
    "workflow_ref": "acme/kernels/.github/workflows/gate.yml@refs/pull/7/merge",
    "run_id": "99",
}


class Issuer:
    """Signs like GitHub, and publishes its keys."""

    def __init__(self) -> None:
        self.key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.fetches = 0
        self.down = False

    def __call__(self, _request: httpx.Request) -> httpx.Response:
        self.fetches += 1
        if self.down:
            return httpx.Response(500)
        public = json.loads(RSAAlgorithm.to_jwk(self.key.public_key()))
        return httpx.Response(200, json={"keys": [{**public, "kid": "k1", "use": "sig", "alg": "RS256"}]})

    def token(self, *, key_id: str = "k1", key: Any = None, **changes: Any) -> str:
        moment = int(time.time())
        claims = {**CLAIMS, "iat": moment, "nbf": moment, "exp": moment + 300, **changes}
        present = {name: value for name, value in claims.items() if value is not None}
        return jwt.encode(present, key or self.key, algorithm="RS256", headers={"kid": key_id})


@pytest.fixture(scope="module")
def issuer() -> Issuer:
    return Issuer()


@pytest.fixture
def service(backends: Backends, issuer: Issuer) -> Iterator[Running]:
    backend = backends.get("sqlite")
    backend.empty()
    settings = backend.settings.model_copy(
        update={"github_oidc_audience": AUDIENCE, "github_oidc_allow": (RULE,), "github_job_token_s": 60.0}
    )
    running = Running(settings, backend.publisher)
    running.app.state.job_keys = Keys(settings, transport=httpx.MockTransport(issuer))
    with backend.database.write() as session:
        session.add(Project(slug="acme--kernels"))
    running.start()
    yield running
    running.stop()


Exchange = Callable[[str], httpx.Response]


@pytest.fixture
def exchange(service: Running) -> Exchange:
    return lambda token: service.api().http.post("/github/job-tokens", json={"token": token})


def test_a_job_gets_a_token_that_submits_to_its_project_alone_and_ends(
    service: Running, exchange: Exchange, issuer: Issuer
) -> None:
    answer = exchange(issuer.token())
    assert answer.status_code == 201, answer.text
    assert answer.json()["project"] == "acme--kernels"
    job: Api = service.api(answer.json()["token"])
    admin = service.api(service.token(Scope.ADMIN))
    for project in ("acme--kernels", "local"):
        admin.ok("PUT", f"/projects/{project}/kernels/sgemm_cpu/suite", json=SUITE)
    job.ok("POST", "/revisions", json=submission(project="acme--kernels"))
    assert job.problem("POST", "/revisions", json=submission())["type"] == "forbidden"
    assert job.problem("PUT", "/projects/acme--kernels/kernels/sgemm_cpu/suite", json=SUITE)["type"] == "forbidden"
    with service.database.write() as session:
        [token] = session.exec(select(Token).where(Token.scope == Scope.SUBMIT)).all()
        assert token.expires_at is not None
        token.expires_at = token.created_at
        session.add(token)
    assert job.problem("GET", "/revisions", params={"project": "acme--kernels"})["type"] == "unauthorised"
    exchange(issuer.token())
    with service.database.read() as session:
        assert session.get(Token, token.id) is None


_OTHER_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)


@pytest.mark.parametrize(
    "changes",
    [
        {"aud": "https://elsewhere.example.org"},
        {"iss": "https://evil.example.org"},
        {"exp": int(time.time()) - 120},
        {"nbf": int(time.time()) + 3600},
        {"repository": None},
        {"workflow_ref": None},
        {"key": _OTHER_KEY},
        {"key_id": "k2"},
    ],
)
def test_a_token_for_somebody_else_or_of_somebody_else_is_refused_and_logged(
    exchange: Exchange, issuer: Issuer, changes: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    answer = exchange(issuer.token(**changes))
    assert answer.status_code == 401
    assert answer.json()["type"].endswith(":bad-job-token")
    assert "refused a job's token" in caplog.text


@pytest.mark.parametrize("token", ["", "x", "a.b.c"])
def test_what_is_no_token_is_refused(exchange: Exchange, token: str) -> None:
    assert exchange(token).status_code in {401, 422}


def test_an_unsigned_token_is_refused(exchange: Exchange) -> None:
    moment = int(time.time())
    unsigned = jwt.encode({**CLAIMS, "iat": moment, "exp": moment + 300}, None, algorithm="none", headers={"kid": "k1"})
    assert exchange(unsigned).status_code == 401


@pytest.mark.parametrize(
    "changes",
    [
        {"repository": "acme/other"},
        {"repository": "evil/kernels"},
        {"ref": "refs/tags/v1"},
        {"event_name": "pull_request_target"},
        {"event_name": "schedule"},
        {"workflow_ref": "acme/kernels/.github/workflows/other.yml@refs/heads/main"},
        {"workflow_ref": "evil/kernels/.github/workflows/gate.yml@refs/heads/main"},
    ],
)
def test_a_job_that_no_rule_allows_is_refused_and_logged(
    exchange: Exchange, issuer: Issuer, changes: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    answer = exchange(issuer.token(**changes))
    assert answer.status_code == 403
    assert answer.json()["type"].endswith(":job-not-allowed")
    assert "refused a job that no rule allows" in caplog.text


def test_events_that_lend_rights_to_forks_can_not_even_be_configured() -> None:
    with pytest.raises(ValidationError, match="pull_request_target"):
        OidcRule(repository="acme/kernels", project="p", workflow="gate.yml", events=("pull_request_target",))


def test_keys_are_fetched_once_kept_through_an_outage_and_not_for_every_nonsense() -> None:
    issuer = Issuer()
    keys = Keys(Settings(), transport=httpx.MockTransport(issuer))
    assert keys.find("k1") is not None
    issuer.down = True
    assert keys.find("k1") is not None
    assert [keys.find(f"nonsense-{each}") for each in range(20)] == [None] * 20
    assert issuer.fetches == 1


def test_an_issuer_that_never_answered_is_said_to_be_away() -> None:
    issuer = Issuer()
    issuer.down = True
    with pytest.raises(ProblemError) as caught:
        Keys(Settings(), transport=httpx.MockTransport(issuer)).find("k1")
    assert caught.value.problem.status == 503


def test_without_an_audience_there_is_no_exchange(running: Running, issuer: Issuer) -> None:
    problem = running.api().problem("POST", "/github/job-tokens", json={"token": issuer.token()})
    assert problem["type"] == "oidc-off"
