"""Every setting of the service, from the environment (`KERNELGATE_…`, and the customary DATABASE_URL and REDIS_URL)."""

from functools import lru_cache
from typing import Literal

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict


class Settings(BaseSettings):
    """Durations are seconds. Stage watchdog < task soft limit < task hard limit < `lease_deadline_s`."""

    model_config = SettingsConfigDict(env_prefix="KERNELGATE_", populate_by_name=True, extra="ignore", frozen=True)

    database_url: str = Field(default="sqlite:///.kernelgate/kernelgate.db", validation_alias="DATABASE_URL")
    redis_url: str = Field(default="redis://127.0.0.1:6379/0", validation_alias="REDIS_URL")
    store_url: str = Field(
        default=".kernelgate/store", description="where bundles and logs go: a folder or an fsspec URL"
    )
    public_url: str = Field(default="http://127.0.0.1:8000", description="where people reach this service")
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
    cookie_secure: bool = Field(default=False, description="set it where the service is reached over HTTPS")
    cookie_same_site: Literal["lax", "strict"] = "lax"


@lru_cache
def settings_from_environment() -> Settings:
    return Settings()
