"""Query parameters: one that a route doesn't have is refused, as fields of a body are, instead of passed over."""

from collections.abc import Iterator

from fastapi import Request
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute

from service.problems import ProblemError


async def check_query(request: Request) -> None:
    if not request.query_params:
        return
    route: APIRoute = request.scope["route"]
    known = set(_names(route.dependant))
    unknown = next((name for name in request.query_params if name not in known), None)
    if unknown is not None:
        has = ", ".join(sorted(known)) or "none"
        field = unknown[:80]
        raise ProblemError(422, "invalid-request", f"{field!r} is no parameter of this (it has {has})", field=field)


def _names(dependant: Dependant) -> Iterator[str]:
    yield from (field.alias for field in dependant.query_params)
    for each in dependant.dependencies:
        yield from _names(each)
