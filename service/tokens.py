"""Tokens: made, listed, revoked. The secret is shown once and kept nowhere."""

from sqlmodel import Session, col, delete, select

from contract.api import Scope, TokenIn, TokenOut, TokenPage
from contract.text import one_line
from service import find
from service.auth import Principal, issue_token
from service.models import BrowserSession, Project, SignInCode, Token
from service.pages import cut
from service.problems import ProblemError, not_found


def create_token(session: Session, *, principal: Principal, wanted: TokenIn) -> TokenOut:
    if wanted.scope is Scope.WORKER and wanted.node is None:
        raise ProblemError(422, "invalid-request", "node: a worker's token is bound to a node; name it", field="node")
    if wanted.scope is not Scope.WORKER and wanted.node is not None:
        raise ProblemError(422, "invalid-request", "node: only a worker's token is bound to a node", field="node")
    project = find.project_by_slug(session, principal=principal, slug=wanted.project) if wanted.project else None
    if principal.project is not None and (project is None or project.id != principal.project):
        raise ProblemError(403, "forbidden", "a token bound to a project makes tokens for that project only")
    token, secret = issue_token(
        session,
        scope=wanted.scope,
        project_id=project.id if project else None,
        node=wanted.node,
        note=one_line(wanted.note, 200),
    )
    session.flush()
    return _token_out(token, project, secret=secret)


def list_tokens(session: Session, *, principal: Principal, after: str | None, limit: int) -> TokenPage:
    query = select(Token, Project).join(Project, col(Project.id) == col(Token.project_id), isouter=True)
    if principal.project is not None:
        query = query.where(Token.project_id == principal.project)
    if after is not None:
        query = query.where(Token.id > after)
    found = session.exec(query.order_by(Token.id).limit(limit + 1)).all()
    rows, following = cut(found, limit, lambda row: row[0].id)
    return TokenPage(items=tuple(_token_out(token, project) for token, project in rows), next=following)


def revoke_token(session: Session, *, principal: Principal, token_id: str) -> None:
    """Cookies and sign-in codes that stand for it end with it."""
    token = session.get(Token, token_id)
    if token is None or (principal.project is not None and token.project_id != principal.project):
        raise not_found("token", token_id)
    session.exec(delete(BrowserSession).where(col(BrowserSession.token_id) == token_id))
    session.exec(delete(SignInCode).where(col(SignInCode.token_id) == token_id))
    session.delete(token)


def _token_out(token: Token, project: Project | None, *, secret: str | None = None) -> TokenOut:
    return TokenOut(
        id=token.id,
        scope=token.scope,
        project=project.slug if project else None,
        node=token.node,
        note=token.note,
        created_at=token.created_at,
        secret=secret,
    )
