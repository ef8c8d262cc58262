"""Who the job is to the service: a stored token, or the one that GitHub gives the job itself (OIDC)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import httpx

from cli.client import Client
from cli.errors import CliError, Exit
from contract.github import JobTokenIn, JobTokenOut

_GITHUB_S = 20.0


@dataclass(frozen=True)
class Identity:
    """`project`: what the service says that the job's token is for; None with a stored token."""

    token: str
    project: str | None
    renewable: bool


def identify(url: str, *, environ: Mapping[str, str], audience: str | None = None) -> Identity:
    """KERNELGATE_TOKEN where it is set, else an exchange of the job's own token. Raises CliError."""
    stored = environ.get("KERNELGATE_TOKEN")
    if stored:
        return Identity(token=stored, project=None, renewable=False)
    request_url = environ.get("ACTIONS_ID_TOKEN_REQUEST_URL")
    request_token = environ.get("ACTIONS_ID_TOKEN_REQUEST_TOKEN")
    if not request_url or not request_token:
        raise CliError(
            "this job has no identity: KERNELGATE_TOKEN is not set, and GitHub gave it no token of its own",
            hint="give the job `permissions: id-token: write`; a fork's pull request gets none even so: "
            "forks are gated by the GitHub App alone",
        )
    own = _own_token(request_url, request_token, audience=audience or url.rstrip("/"))
    with Client(url) as client:
        answer = client.post("/github/job-tokens", JobTokenOut, JobTokenIn(token=own))
    return Identity(token=answer.token, project=answer.project, renewable=True)


def _own_token(url: str, token: str, *, audience: str) -> str:
    try:
        answer = httpx.get(
            httpx.URL(url).copy_merge_params({"audience": audience}),
            headers={"Authorization": f"Bearer {token}"},
            timeout=_GITHUB_S,
        ).raise_for_status()
        return str(answer.json()["value"])
    except (httpx.HTTPError, ValueError, KeyError, TypeError) as error:
        raise CliError(f"GitHub gives this job no token: {error}", code=Exit.NOT_MEASURED) from error
