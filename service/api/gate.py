"""The gate's answer about a commit."""

from typing import Annotated

from fastapi import APIRouter, Path

from contract.gate import CommitGate
from service.auth import Reader
from service.database import DatabaseDep
from service.find import project_by_slug
from service.gating import commit_gate

router = APIRouter(tags=["gate"])

_Commit = Annotated[str, Path(pattern=r"^([0-9a-f]{40}|[0-9a-f]{64})$", description="the whole commit id")]


@router.get("/projects/{project}/commits/{commit}/gate")
def get_gate(project: str, commit: _Commit, database: DatabaseDep, principal: Reader) -> CommitGate:
    """One conclusion over all evaluations of the commit, by the kernels' suites, and the sentence that says why."""
    with database.read() as session:
        owner = project_by_slug(session, principal=principal, slug=project)
        return commit_gate(session, project=owner, commit=commit)
