from fastapi import APIRouter, Request, status
from starlette.concurrency import run_in_threadpool

from contract.base import Model
from service.api.state import Services, ServicesDep
from service.github import inbox
from service.github.inbox import Incoming
from service.problems import ProblemError

router = APIRouter(tags=["github"])


class Acknowledged(Model):
    """`kept`: it is new and will be worked off; False for a repeated one and for events that nothing here needs."""

    kept: bool


@router.post("/webhooks/github", status_code=status.HTTP_202_ACCEPTED)
async def receive_delivery(request: Request, services: ServicesDep) -> Acknowledged:
    """A delivery of the GitHub App. It is kept and acknowledged at once, and worked off after that."""
    secret = services.settings.github_webhook_secret
    if secret is None:
        raise ProblemError(404, "github-off", "no GitHub App is set up here")
    incoming = inbox.check_delivery(request.headers, await request.body(), secret=secret.get_secret_value())
    if incoming.event not in inbox.EVENTS:
        return Acknowledged(kept=False)
    return Acknowledged(kept=await run_in_threadpool(_keep, services, incoming))


def _keep(services: Services, incoming: Incoming) -> bool:
    with services.database.write() as session:
        return inbox.keep(session, incoming)
