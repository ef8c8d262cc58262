from typing import Annotated, cast

from fastapi import APIRouter, Body, Request, status
from starlette.concurrency import run_in_threadpool

from contract.base import Model
from contract.github import JobTokenIn, JobTokenOut
from service.api.state import Services, ServicesDep
from service.github import inbox, oidc
from service.github.inbox import Incoming
from service.problems import ProblemError

router = APIRouter(tags=["github"])
webhooks = APIRouter(tags=["github"])
WEBHOOK = "/webhooks/github"
# GitHub sends none that is larger.
LARGEST_DELIVERY_BYTES = 25 << 20
_JOB_TOKEN = {"token": "eyJhbGciOiJSUzI1NiIs…"}


class Acknowledged(Model):
    """`kept`: it is new and will be worked off; False for a repeated one and for events that nothing here needs."""

    kept: bool


@webhooks.post(WEBHOOK, status_code=status.HTTP_202_ACCEPTED)
async def receive_delivery(request: Request, services: ServicesDep) -> Acknowledged:
    """A delivery of the GitHub App. It is kept and acknowledged at once, and worked off after that."""
    secret = services.settings.github_webhook_secret
    if secret is None:
        raise ProblemError(404, "github-off", "no GitHub App is set up here")
    incoming = inbox.check_delivery(request.headers, await request.body(), secret=secret.get_secret_value())
    services.pace.delivery_came()
    if incoming.event not in inbox.EVENTS:
        return Acknowledged(kept=False)
    return Acknowledged(kept=await run_in_threadpool(_keep, services, incoming))


def _keep(services: Services, incoming: Incoming) -> bool:
    with services.database.write(urgent=True) as session:
        return inbox.keep(session, incoming)


@router.post("/github/job-tokens", status_code=status.HTTP_201_CREATED)
def create_job_token(
    wanted: Annotated[JobTokenIn, Body(examples=[_JOB_TOKEN])], request: Request, services: ServicesDep
) -> JobTokenOut:
    """A GitHub Actions job's own token (OIDC) for a short-lived one of scope submit. The job's repository, ref, event
    and workflow must fit one of the service's rules."""
    settings = services.settings
    if settings.github_oidc_audience is None:
        raise ProblemError(404, "oidc-off", "no audience is set: jobs need a stored token here")
    keys = cast("oidc.Keys", request.app.state.job_keys)
    claims = oidc.read_claims(wanted.token, keys=keys, settings=settings)
    rule = oidc.rule_for(claims, settings.github_oidc_allow)
    with services.database.write() as session:
        token, secret = oidc.exchange(session, claims=claims, rule=rule, settings=settings)
        expires_at = token.expires_at
    if expires_at is None:
        raise LookupError("a job's token without an end")
    return JobTokenOut(token=secret, project=rule.project, expires_at=expires_at)
