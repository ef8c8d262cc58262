from typing import Annotated

from fastapi import APIRouter, Body, status

from contract.job import NodeInfo
from contract.views import NodePage
from service import nodes
from service.api import examples
from service.auth import Reader, SettingsDep, WorkerNode
from service.database import DatabaseDep
from service.node_details import node_page
from service.pages import After, Limit
from service.problems import ProblemError

router = APIRouter(tags=["nodes"])


@router.get("/nodes")
def list_nodes(
    *, database: DatabaseDep, settings: SettingsDep, principal: Reader, after: After = None, limit: Limit = 50
) -> NodePage:
    """The nodes by name: what each does (idle, busy, offline: not heard of lately, whatever it held, or unhealthy), how
    it measures, and when it could not be used."""
    with database.read() as session:
        return node_page(session, principal=principal, settings=settings, after=after, limit=limit)


@router.put("/nodes/{name}", status_code=status.HTTP_204_NO_CONTENT)
def see_node(
    name: str, info: Annotated[NodeInfo, Body(examples=[examples.NODE])], database: DatabaseDep, principal: WorkerNode
) -> None:
    """An idle node says that it is there; a node at work says so with its heartbeats."""
    if name != info.name:
        raise ProblemError(422, "invalid-request", f"name: the body is node {info.name}'s", field="name")
    with database.write() as session:
        nodes.see_node(session, principal=principal, info=info)
