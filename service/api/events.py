import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from typing import Annotated

from fastapi import APIRouter, Header, Response, status
from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.concurrency import run_in_threadpool

from service import find
from service.api.state import Services, ServicesDep
from service.auth import Principal, Reader
from service.events import events_after
from service.models import Event
from service.presenting import evaluation_out
from service.states import ENDED

router = APIRouter(tags=["evaluations"])


@router.get("/evaluations/{evaluation_id}/events", response_class=EventSourceResponse)
async def stream_events(
    evaluation_id: str,
    services: ServicesDep,
    principal: Reader,
    last_event_id: Annotated[int, Header(ge=0, lt=1 << 31, description="resume after this event")] = 0,
) -> Response:
    """Server-sent events from the first (or from `Last-Event-ID`) to the end: `progress` carries a Progress, `state`
    and `finished` carry the evaluation as it is when sent. Ends when the evaluation has; 204 where nothing is left."""
    events, ended, _ = await run_in_threadpool(_after, services, principal, evaluation_id, last_event_id)
    if ended and not events:
        return Response(status_code=status.HTTP_204_NO_CONTENT)
    return EventSourceResponse(
        _stream(services, principal, evaluation_id, last_event_id),
        ping=services.settings.ping_every_s,
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


async def _stream(
    services: Services, principal: Principal, evaluation_id: str, number: int
) -> AsyncIterator[ServerSentEvent]:
    while True:
        events, ended, evaluation = await run_in_threadpool(_after, services, principal, evaluation_id, number)
        for event in events:
            number = event.number
            data = json.dumps(event.data) if event.kind == "progress" else evaluation
            yield ServerSentEvent(data=data, event=event.kind, id=str(number))
        if ended:
            return
        await asyncio.sleep(services.settings.poll_every_s)


def _after(
    services: Services, principal: Principal, evaluation_id: str, number: int
) -> tuple[Sequence[Event], bool, str]:
    """The events after `number`, whether they are the last, and the evaluation as JSON where an event wants it."""
    with services.database.read() as session:
        evaluation = find.evaluation_by_id(session, principal=principal, evaluation_id=evaluation_id)
        ended = evaluation.state in ENDED
        events = events_after(session, evaluation_id=evaluation_id, number=number)
        wanted = any(event.kind != "progress" for event in events)
        if wanted:
            # It may have ended between the two looks at it; what an event tells of must be in it.
            session.refresh(evaluation)
        return events, ended, evaluation_out(session, evaluation).model_dump_json() if wanted else ""
