"""What a GitHub Actions job says to the service."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from contract.base import Model
from contract.names import ProjectSlug


class JobTokenIn(Model):
    """`token`: the OIDC token that GitHub gave the job, for this service's audience."""

    token: str = Field(min_length=1, max_length=16_384)


class JobTokenOut(Model):
    """A token of scope submit for one project, which ends by itself."""

    token: str
    project: ProjectSlug
    expires_at: datetime
