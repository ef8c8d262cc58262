"""An evaluation's progress as it happens: SSE where it works, resumed where it drops, long polls where it doesn't."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import httpx
from httpx_sse import EventSource, ServerSentEvent, SSEError
from pydantic import ValidationError

from cli.client import LONG_POLL_S, Client
from cli.errors import CliError, Exit, ProblemError
from contract.api import EvaluationOut
from contract.job import Progress
from contract.outcomes import State

FINAL = {State.FINISHED, State.CANCELLED}
# The service pings a quiet stream; one that is silent for longer than this is dead.
SILENCE_S = 45.0
# A service may be away this long (a restart, a deployment) before its client gives up.
PATIENCE_S = 120.0
# Streams that brought nothing, one after the other, before long polls take over: a proxy may hold streams back.
FRUITLESS_STREAMS = 3
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.25, 5.0


def follow(
    client: Client,
    evaluation: str,
    *,
    pause: Callable[[float], None] = time.sleep,
    now: Callable[[], float] = time.monotonic,
) -> Iterator[EvaluationOut | Progress]:
    """Yield what changes, the last time the final EvaluationOut; raises CliError where the service stays away."""
    current = client.get(f"/evaluations/{evaluation}", EvaluationOut)
    yield current
    stream = _Stream(client, evaluation)
    last_contact, pause_s = now(), FIRST_PAUSE_S
    while current.state not in FINAL:
        for update in stream.updates():
            yield update
            if isinstance(update, EvaluationOut) and update.state in FINAL:
                return
        # However the stream ended: the evaluation itself says where it stands, or that the service is away.
        try:
            wait_s = LONG_POLL_S if stream.given_up else None
            current = client.get(f"/evaluations/{evaluation}", EvaluationOut, wait=wait_s)
        except CliError as error:
            if not _may_pass(error):
                raise
            if now() - last_contact > PATIENCE_S:
                raise _given_up(error, evaluation) from error
            stream.reset()
            pause(pause_s)
            pause_s = min(pause_s * 2, LONGEST_PAUSE_S)
            continue
        last_contact, pause_s = now(), FIRST_PAUSE_S
        yield current
        if not (stream.given_up or current.state in FINAL):
            pause(pause_s)


class _Stream:
    """The events of one evaluation over as many connections as it takes."""

    def __init__(self, client: Client, evaluation: str) -> None:
        self._client = client
        self._path = f"/evaluations/{evaluation}/events"
        self._last_event = ""
        self._fruitless = 0

    @property
    def given_up(self) -> bool:
        return self._fruitless >= FRUITLESS_STREAMS

    def reset(self) -> None:
        """A service that was away may stream again once it is back."""
        self._fruitless = 0

    def updates(self) -> Iterator[EvaluationOut | Progress]:
        """What one connection brings until it ends or drops; raises ProblemError where it will always be refused."""
        if self.given_up:
            return
        self._fruitless += 1
        try:
            for event in self._events():
                self._fruitless = 0
                self._last_event = event.id or self._last_event
                yield parse_event(event) or self._client.get(self._path.removesuffix("/events"), EvaluationOut)
        except (httpx.HTTPError, SSEError):
            return
        except CliError as error:
            if not _may_pass(error):
                raise

    def _events(self) -> Iterator[ServerSentEvent]:
        headers = {"Accept": "text/event-stream", "Cache-Control": "no-store"}
        if self._last_event:
            headers["Last-Event-ID"] = self._last_event
        with self._client.stream(self._path, headers=headers, read_s=SILENCE_S) as response:
            yield from EventSource(response).iter_sse()


def parse_event(event: ServerSentEvent) -> EvaluationOut | Progress | None:
    """What an event carries; None where this version doesn't understand it: then the evaluation is read again."""
    try:
        model = Progress if event.event == "progress" else EvaluationOut
        return model.model_validate_json(event.data)
    except ValidationError:
        return None


def _may_pass(error: CliError) -> bool:
    """Whether trying again can help: a service that is away or stumbles, not one that refuses."""
    if isinstance(error, ProblemError):
        return error.status >= 500 or error.status == 429
    return isinstance(error.__cause__, httpx.HTTPError)


def _given_up(error: CliError, evaluation: str) -> CliError:
    return CliError(
        f"{error.message} (for {PATIENCE_S:.0f} s)",
        hint=f"the evaluation goes on without this command: `kernelgate watch {evaluation}`",
        code=Exit.NOT_MEASURED,
    )
