"""What the routes share, as FastAPI dependencies."""

from dataclasses import dataclass, field
from typing import Annotated, cast

from fastapi import Depends, Request

from contract.api import Problem
from service.database import Database
from service.dispatch import Dispatcher
from service.github.pace import Pace
from service.settings import Settings
from service.store import Store


@dataclass(frozen=True, kw_only=True)
class Services:
    """Made once per process by service.app.create_app."""

    settings: Settings
    database: Database
    store: Store
    dispatcher: Dispatcher
    pace: Pace = field(default_factory=Pace)


def services_of(request: Request) -> Services:
    return cast("Services", request.app.state.services)


ServicesDep = Annotated[Services, Depends(services_of)]

# For `responses=` of every router: errors are problem details, whatever their status.
PROBLEMS: dict[int | str, dict[str, object]] = {
    "4XX": {
        "description": "A problem (RFC 9457): what was wrong, where, and what to do",
        "content": {"application/problem+json": {"schema": Problem.model_json_schema()}},
    },
    422: {
        "description": "Something in the request is wrong; `field` names it",
        "content": {
            "application/problem+json": {
                "schema": Problem.model_json_schema(),
                "example": {
                    "type": "urn:kernelgate:problem:bundle-bad-manifest",
                    "title": "Bundle bad manifest",
                    "status": 422,
                    "detail": "kernel.toml: constraints.multiple_of.q is not a dimension of gemm (m, n, k)",
                    "field": "files",
                },
            }
        },
    },
}
