"""Every setting of the service, from the environment (`KERNELGATE_…`, and the customary DATABASE_URL and REDIS_URL)."""

from functools import lru_cache
from pathlib import Path
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from contract.names import ProjectSlug


class OidcRule(BaseModel):
    """A GitHub Actions job that may submit without a stored secret: all of its claims must fit.

    `workflow`: the file in .github/workflows; `refs`: patterns, `*` stands for anything.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    repository: str
    project: ProjectSlug
    workflow: str
    events: tuple[str, ...] = ("merge_group", "pull_request", "push")
    refs: tuple[str, ...] = ("refs/heads/*", "refs/pull/*/merge")

    @field_validator("events")
    @classmethod
    def _no_event_that_lends_rights_to_forks(cls, events: tuple[str, ...]) -> tuple[str, ...]:
        for event in events:
            if event in {"pull_request_target", "workflow_run", "issue_comment"}:
                raise ValueError(f"{event} runs with the repository's rights on what a fork may have written")
        return events


class Settings(BaseSettings):
    """Durations are seconds. Stage watchdog < task soft limit < task hard limit < `lease_deadline_s`."""

    model_config = SettingsConfigDict(env_prefix="KERNELGATE_", populate_by_name=True, extra="ignore", frozen=True)

    database_url: str = Field(default="sqlite:///.kernelgate/kernelgate.db", validation_alias="DATABASE_URL")
    redis_url: str = Field(default="redis://127.0.0.1:6379/0", validation_alias="REDIS_URL")
    store_url: str = Field(
        default=".kernelgate/store", description="where bundles and logs go: a folder or an fsspec URL"
    )
    public_url: str = Field(default="http://127.0.0.1:8000", description="where people reach this service")
    web_dir: str | None = Field(default=None, description="the built web view; by default web/dist of this checkout")
    public_read: bool = Field(default=False, description="reading needs no token")
    migrate_on_start: bool = True

    database_pool: int = Field(default=20, ge=2, description="connections, and threads that use them")
    database_wait_s: float = 30.0
    max_request_bytes: int = Field(default=16 << 20, ge=1)

    heartbeat_s: float = Field(default=5.0, gt=0, description="how often a node reports while it works")
    heartbeat_timeout_s: float = Field(default=30.0, gt=0, description="a lease ends when its heartbeat is this old")
    lease_deadline_s: float = Field(default=3600.0, gt=0, description="a lease ends this long after the claim")
    max_attempts: int = Field(default=3, ge=1)
    node_offline_after_s: float = Field(default=90.0, gt=0)

    reconcile_every_s: float = Field(default=5.0, gt=0)
    republish_after_s: float = Field(default=30.0, ge=0, description="doubles with every publish of the same row")
    republish_at_most_s: float = Field(default=300.0, ge=0)
    publish_timeout_s: float = Field(default=1.0, gt=0, description="socket time-out towards Redis")
    publish_retries: int = Field(default=2, ge=0)

    max_wait_s: float = Field(default=60.0, gt=0, description="the longest long poll")
    poll_every_s: float = Field(default=0.25, gt=0, description="how often a waiting request looks at the database")
    ping_every_s: float = Field(default=15.0, gt=0, description="keeps an idle event stream open")

    session_s: float = Field(default=7 * 86400.0, gt=0)
    sign_in_code_s: float = Field(default=600.0, gt=0, description="how long a one-time link opens a session")
    cookie_secure: bool = Field(default=False, description="set it where the service is reached over HTTPS")
    cookie_same_site: Literal["lax", "strict"] = "lax"

    github_app_id: int | None = None
    github_private_key: Path | None = Field(default=None, description="the App's private key, a PEM file")
    github_webhook_secret: SecretStr | None = None
    github_url: str = "https://api.github.com"
    github_owners: tuple[str, ...] = Field(default=(), description="accounts whose installations count; () is all")
    github_every_s: float = Field(default=1.0, gt=0, description="how often deliveries and checks are looked after")
    github_progress_s: float = Field(default=10.0, gt=0, description="a check shows progress at most so often")
    github_timeout_s: float = Field(default=15.0, gt=0, description="one request to GitHub")
    github_pause_s: float = Field(default=2.0, gt=0, description="before the second try; doubles up to 15 min")
    github_retry_for_s: float = Field(default=86400.0, gt=0, description="how long GitHub may refuse before we stop")
    github_node_wait_s: float = Field(default=1800.0, gt=0, description="how long a check waits for a healthy node")

    github_oidc_issuer: str = "https://token.actions.githubusercontent.com"
    github_oidc_audience: str | None = Field(default=None, description="what jobs ask their tokens for; None is off")
    github_oidc_allow: tuple[OidcRule, ...] = ()
    github_job_token_s: float = Field(default=3600.0, gt=0, description="how long a job's token lasts")

    @property
    def github_on(self) -> bool:
        return self.github_app_id is not None

    @model_validator(mode="after")
    def _github_is_whole_or_off(self) -> Self:
        wanted = (self.github_app_id, self.github_private_key, self.github_webhook_secret)
        if any(wanted) and not all(wanted):
            raise ValueError(
                "the GitHub gate needs all of KERNELGATE_GITHUB_APP_ID, KERNELGATE_GITHUB_PRIVATE_KEY and "
                "KERNELGATE_GITHUB_WEBHOOK_SECRET, or none of them"
            )
        return self


@lru_cache
def settings_from_environment() -> Settings:
    return Settings()
