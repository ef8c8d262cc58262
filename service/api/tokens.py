from typing import Annotated

from fastapi import APIRouter, Body, status

from contract.api import TokenIn, TokenOut, TokenPage
from service import tokens
from service.api import examples
from service.auth import Admin
from service.database import DatabaseDep
from service.pages import After, Limit

router = APIRouter(tags=["tokens"])


@router.post("/tokens", status_code=status.HTTP_201_CREATED)
def create_token(
    wanted: Annotated[TokenIn, Body(examples=[examples.TOKEN])], database: DatabaseDep, principal: Admin
) -> TokenOut:
    """Make a token. Its secret is in this answer and nowhere else."""
    with database.write() as session:
        return tokens.create_token(session, principal=principal, wanted=wanted)


@router.get("/tokens")
def list_tokens(*, database: DatabaseDep, principal: Admin, after: After = None, limit: Limit = 50) -> TokenPage:
    """The oldest first, without secrets."""
    with database.read() as session:
        return tokens.list_tokens(session, principal=principal, after=after, limit=limit)


@router.delete("/tokens/{token_id}", status_code=status.HTTP_204_NO_CONTENT)
def revoke_token(token_id: str, database: DatabaseDep, principal: Admin) -> None:
    with database.write() as session:
        tokens.revoke_token(session, principal=principal, token_id=token_id)
