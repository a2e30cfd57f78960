"""Responses that tasks read as streams of events."""

from __future__ import annotations

import types
from collections.abc import Generator
from typing import TYPE_CHECKING, Any

from weir import _weir

if TYPE_CHECKING:
    from types import TracebackType

    from weir._weir import ScriptEvent, ScriptResponse, StreamStep

__all__: list[str] = []

_NEXT_EVENT = _weir.StreamStep.NextEvent
_LEAVE = _weir.StreamStep.Leave


@types.coroutine
def _step(step: StreamStep) -> Generator[object, Any, Any]:
    return (yield step)


@types.coroutine
def _sent(request: object) -> Generator[object, ScriptResponse, ScriptResponse]:
    return (yield request)


class StreamBlock:
    """Block of a task within which a response is read: ``async with self.stream("GET", "/events") as r``."""

    def __init__(self, user: Any, request: _weir.ScriptRequest) -> None:
        """Take the request, which is sent when the block begins."""
        self._user = user
        self._request = request

    async def __aenter__(self) -> StreamedResponse:
        """Send the request, and wait for the head of its response."""
        response = await _sent(self._request)
        self._user._weir_stream = self
        return StreamedResponse(response, self)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Leave the block; what is left of the response is not read."""
        if kind is GeneratorExit:
            # The end of the load closes the task, which waits for nothing any more.
            self._user._weir_stream = None
            return
        await self.leave()

    @types.coroutine
    def leave(self) -> Generator[object, Any, None]:
        """Leave the block, if that has not been done."""
        if self.is_open:
            yield _LEAVE
            self._user._weir_stream = None

    @property
    def is_open(self) -> bool:
        """Whether the task is within the block."""
        return self._user._weir_stream is self


class StreamedResponse:
    """Response that is read as a stream of events.

    It has what a response has, such as `status`, `headers`, `check()` and `failure()`, but for its body.
    """

    def __init__(self, response: ScriptResponse, block: StreamBlock) -> None:
        """Take the response, whose head is there."""
        self._response = response
        self._block = block

    def __getattr__(self, name: str) -> Any:
        """Return what the response has."""
        return getattr(self._response, name)

    def events(self) -> EventIterator:
        """Return the events, to be read as they arrive: ``async for event in r.events()``.

        An event has `data` (text), `json()`, `content` (bytes), `event` (its type, ``"message"`` without one) and `id`.

        Raises:
            NoResponse: The response breaks off, stalls, or is not whole in time.
        """
        return EventIterator(self._block)

    def __repr__(self) -> str:
        """Return the status."""
        return f"<StreamedResponse [{self._response.status}]>"


class EventIterator:
    """Events of a streamed response."""

    def __init__(self, block: StreamBlock) -> None:
        """Take the block within which events are read."""
        self._block = block

    def __aiter__(self) -> EventIterator:
        """Return itself."""
        return self

    async def __anext__(self) -> ScriptEvent:
        """Wait for the next event."""
        event: ScriptEvent | None = await _step(_NEXT_EVENT) if self._block.is_open else None
        if event is None:
            raise StopAsyncIteration
        return event
