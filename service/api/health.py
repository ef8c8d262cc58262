from typing import Literal

from fastapi import APIRouter
from sqlalchemy import text

from contract.base import Model
from service.api.state import ServicesDep
from service.problems import ProblemError

router = APIRouter(tags=["health"])


class Health(Model):
    status: Literal["ok"] = "ok"


class Readiness(Model):
    """`broker` unreachable is no reason to be taken out of service: submissions wait in the database."""

    database: Literal["ok"] = "ok"
    broker: Literal["ok", "unreachable"]


@router.get("/healthz")
async def healthz() -> Health:
    """The process answers."""
    return Health()


@router.get("/readyz")
def readyz(services: ServicesDep) -> Readiness:
    """The database answers; 503 where it doesn't."""
    try:
        with services.database.read() as session:
            session.connection().execute(text("SELECT 1 FROM project"))
    except Exception as error:
        raise ProblemError(503, "database-unreachable", "the database doesn't answer") from error
    return Readiness(broker="ok" if services.dispatcher.reachable() else "unreachable")
