import asyncio
import time
from typing import Annotated

from fastapi import APIRouter, Body, Query, Response, status
from fastapi.responses import PlainTextResponse
from starlette.concurrency import run_in_threadpool

from contract.api import EvaluationIn, EvaluationOut, EvaluationPage
from contract.devices import DeviceClass
from contract.outcomes import State
from service import evaluations, find, submitting
from service.api import examples
from service.api.revisions import IdempotencyKey
from service.api.state import Services, ServicesDep
from service.auth import Principal, Reader, Submitter
from service.database import DatabaseDep
from service.dispatch import wake_of
from service.models import Evaluation
from service.pages import After, Limit
from service.presenting import evaluation_out, evaluation_outs
from service.problems import ProblemError
from service.states import ENDED

router = APIRouter(tags=["evaluations"])


@router.post("/evaluations", status_code=status.HTTP_201_CREATED)
def create_evaluation(
    wanted: Annotated[EvaluationIn, Body(examples=[examples.EVALUATION])],
    response: Response,
    services: ServicesDep,
    principal: Submitter,
    idempotency_key: IdempotencyKey = None,
) -> EvaluationOut:
    """Evaluate a revision again, against another base, or on another class. The verdict pools the evidence of all
    repeats. With an `Idempotency-Key`, a request that is sent twice repeats once."""
    with services.database.write() as session:
        project, _, _ = find.revision_by_id(session, principal=principal, revision_id=wanted.revision)
        fingerprint = submitting.fingerprint_of("evaluation", wanted.model_dump_json())
        known = (
            submitting.recall(session, project=project, key=idempotency_key, fingerprint=fingerprint)
            if idempotency_key
            else None
        )
        wakes = []
        if known is not None:
            evaluation = find.existing(session, Evaluation, known)
            response.status_code = status.HTTP_200_OK
        else:
            project, evaluation = evaluations.repeat_evaluation(
                session, principal=principal, wanted=wanted, settings=services.settings
            )
            wakes = [wake_of(evaluation)]
            if idempotency_key:
                submitting.remember(
                    session,
                    project=project,
                    key=idempotency_key,
                    fingerprint=fingerprint,
                    resource_id=evaluation.id,
                )
        answer = evaluation_out(session, evaluation)
    services.dispatcher.publish_soon(wakes)
    response.headers["Location"] = f"/api/v1/evaluations/{answer.id}"
    return answer


@router.get("/evaluations")
def list_evaluations(
    *,
    database: DatabaseDep,
    principal: Reader,
    state: State | None = None,
    project: str | None = None,
    kernel: str | None = None,
    device_class: DeviceClass | None = None,
    after: After = None,
    limit: Limit = 50,
    brief: Annotated[bool, Query(description="without cases, checks, stages, machine code and environment")] = False,
) -> EvaluationPage:
    """Newest first, without samples."""
    with database.read() as session:
        rows, following = evaluations.list_evaluations(
            session,
            principal=principal,
            state=state,
            project=project,
            kernel=kernel,
            device_class=device_class,
            after=after,
            limit=limit,
        )
        items = evaluation_outs(session, rows, samples=False, brief=brief)
        return EvaluationPage(items=tuple(items), next=following)


@router.get("/evaluations/{evaluation_id}")
async def get_evaluation(
    evaluation_id: str,
    services: ServicesDep,
    principal: Reader,
    wait: Annotated[float, Query(ge=0, description="seconds to wait for its end; the service caps it")] = 0.0,
    samples: Annotated[bool, Query(description="with every sample and pair")] = False,
) -> EvaluationOut:
    """One evaluation. With `wait`, the answer comes when it has ended or the time is over, whichever is first."""
    until = time.monotonic() + min(wait, services.settings.max_wait_s)
    while True:
        # Looked at and let go: a waiting client holds no connection and no thread.
        ended = await run_in_threadpool(_ended, services, principal, evaluation_id)
        left = until - time.monotonic()
        if ended or left <= 0:
            return await run_in_threadpool(_load, services, principal, evaluation_id, samples)
        await asyncio.sleep(min(services.settings.poll_every_s, left))


def _ended(services: Services, principal: Principal, evaluation_id: str) -> bool:
    with services.database.read() as session:
        return find.evaluation_by_id(session, principal=principal, evaluation_id=evaluation_id).state in ENDED


def _load(services: Services, principal: Principal, evaluation_id: str, samples: bool) -> EvaluationOut:
    with services.database.read() as session:
        evaluation = find.evaluation_by_id(session, principal=principal, evaluation_id=evaluation_id)
        return evaluation_out(session, evaluation, samples=samples)


@router.get("/evaluations/{evaluation_id}/log", response_class=PlainTextResponse)
def get_log(evaluation_id: str, services: ServicesDep, principal: Reader) -> str:
    """What the compiler and the stages printed."""
    with services.database.read() as session:
        evaluation = find.evaluation_by_id(session, principal=principal, evaluation_id=evaluation_id)
    text = services.store.log(evaluation.log_digest) if evaluation.log_digest else None
    if text is None:
        raise ProblemError(404, "no-log", f"evaluation {evaluation_id} has no log")
    return text


@router.delete("/evaluations/{evaluation_id}", responses={202: {"description": "A node is being told to stop"}})
def cancel_evaluation(
    evaluation_id: str, response: Response, services: ServicesDep, principal: Submitter
) -> EvaluationOut:
    """Cancel it. Queued: at once (200). At work: its node kills what runs (202); it ends as `cancelled` soon."""
    with services.database.write() as session:
        evaluation = evaluations.cancel_evaluation(session, principal=principal, evaluation_id=evaluation_id)
        answer = evaluation_out(session, evaluation)
    if answer.state is State.LEASED:
        response.status_code = status.HTTP_202_ACCEPTED
    return answer
