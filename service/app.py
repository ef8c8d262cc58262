"""The application. `uvicorn --factory service.app:create_app` serves it with the settings of the environment."""

import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio.to_thread
from fastapi import APIRouter, Depends, FastAPI
from starlette.concurrency import run_in_threadpool
from starlette.middleware.gzip import GZipMiddleware

from service import problems, web
from service.api import (
    badges,
    compare,
    evaluations,
    events,
    gate,
    github,
    health,
    history,
    imports,
    kernels,
    nodes,
    overview,
    projects,
    regressions,
    revisions,
    sessions,
    tokens,
    worker,
)
from service.api.queries import check_query
from service.api.state import PROBLEMS, Services
from service.auth import BEARER
from service.database import Database, upgrade
from service.dispatch import CeleryPublisher, Dispatcher, Publisher
from service.github.oidc import Keys
from service.github.worker import GithubWorker
from service.limits import BodyLimit
from service.reconciler import Reconciler
from service.settings import Settings, settings_from_environment
from service.store import Store
from service.web import SecurityHeaders

API = "/api/v1"
# Objects between two of Python's collections. An answer is made of tens of thousands of rows without a cycle; at the
# default of 700 looking through them again and again takes as long as everything else.
_COLLECT_AFTER = 100_000
_ROUTERS = (
    projects,
    overview,
    kernels,
    history,
    compare,
    imports,
    regressions,
    revisions,
    events,
    evaluations,
    gate,
    github,
    worker,
    nodes,
    tokens,
    sessions,
)


def create_app(settings: Settings | None = None, *, publisher: Publisher | None = None) -> FastAPI:
    """`publisher`: who takes the messages; Celery by default."""
    settings = settings or settings_from_environment()
    database = Database(settings)
    dispatcher = Dispatcher(database=database, publisher=publisher or CeleryPublisher(settings))
    services = Services(settings=settings, database=database, store=Store(settings.store_url), dispatcher=dispatcher)
    app = FastAPI(
        title="Kernelgate",
        version="1",
        summary="Is the kernel still right, how fast is it, and did this change make it slower?",
        lifespan=_lifespan,
        openapi_url=f"{API}/openapi.json",
        docs_url=f"{API}/docs",
        redoc_url=None,
    )
    app.state.settings = settings
    app.state.database = database
    app.state.services = services
    app.state.job_keys = Keys(settings)
    deliveries = {github.WEBHOOK: max(settings.max_request_bytes, github.LARGEST_DELIVERY_BYTES)}
    app.add_middleware(BodyLimit, limit=settings.max_request_bytes, at=deliveries)
    app.add_middleware(GZipMiddleware, minimum_size=4096, compresslevel=3)
    app.add_middleware(SecurityHeaders)
    problems.install(app)
    api = APIRouter(prefix=API, dependencies=[BEARER, Depends(check_query)])
    for module in _ROUTERS:
        api.include_router(module.router, responses=PROBLEMS)
    app.include_router(api)
    app.include_router(health.router)
    app.include_router(github.webhooks, responses=PROBLEMS)
    app.include_router(badges.router, dependencies=[BEARER], responses=PROBLEMS)
    # The last: its pages are whatever path nobody else has.
    web.install(app, folder=web.folder_of(settings))
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    services: Services = app.state.services
    settings = services.settings
    gc.set_threshold(_COLLECT_AFTER, *gc.get_threshold()[1:])
    if settings.migrate_on_start:
        await run_in_threadpool(upgrade, settings)
    # As many threads as connections: a thread that waits for a connection would keep others from giving theirs back.
    anyio.to_thread.current_default_thread_limiter().total_tokens = settings.database_pool
    reconciler = Reconciler(database=services.database, dispatcher=services.dispatcher, settings=settings)
    reconciler.start()
    gate = _github(services)
    if gate:
        gate.start()
    try:
        yield
    finally:
        if gate:
            await run_in_threadpool(gate.stop)
        await run_in_threadpool(reconciler.stop)
        await run_in_threadpool(services.dispatcher.close)
        services.database.close()


def _github(services: Services) -> GithubWorker | None:
    """None where no App is set up."""
    if not services.settings.github_on:
        return None
    return GithubWorker(
        settings=services.settings,
        database=services.database,
        store=services.store,
        dispatcher=services.dispatcher,
        pace=services.pace,
    )
