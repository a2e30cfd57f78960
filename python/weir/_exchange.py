"""Both halves of a call in flight: its request goes out, and its response comes in."""

from __future__ import annotations

from collections.abc import AsyncIterable, Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

from weir._transport_failure import broken_off
from weir._upload import AsyncUpload, Upload
from weir._waiting import changed, changed_elsewhere

if TYPE_CHECKING:
    from weir import _weir
    from weir._errors import ClientError
    from weir._transport import TransportCall

__all__ = ["AwaitedExchange", "BrokenBody", "Exchange"]


class BrokenBody(NamedTuple):
    """Reason why a body breaks off: the kind of httpx's exception, its message, and its cause if that is weir's."""

    kind: str
    text: str
    cause: ClientError | None
    point: str


_TOO_SLOW = BrokenBody("ReadTimeout", "The read operation timed out", None, "other")


def _piece_of(chunk: bytes | tuple[str, str, str], call: TransportCall) -> bytes | BrokenBody:
    """Return a piece of a body, or why the body ends with it."""
    return chunk if isinstance(chunk, bytes) else BrokenBody(*broken_off(call, chunk))


class Exchange:
    """A call of a thread, which blocks."""

    def __init__(self, call: TransportCall, pieces: Iterable[bytes] | None) -> None:
        self.call = call
        self._streamed = call.streamed
        self._upload = None if pieces is None else Upload(call.streamed, pieces)

    def outcome(self) -> _weir.ResponseHandle:
        """Begin the call, and wait for its outcome, but for what is left of the body."""
        streamed, upload = self._streamed, self._upload
        streamed.begin_on_thread()
        while True:
            if upload is not None:
                streamed.arm()
                upload.feed()
            if (handle := streamed.outcome(upload is None)) is not None:
                return handle
            streamed.wait()

    def chunk(self) -> bytes | BrokenBody:
        """Wait for the next piece of the response's body; it is empty at the end."""
        streamed, upload = self._streamed, self._upload
        while True:
            if upload is not None:
                streamed.arm()
                upload.feed()
            chunk = streamed.chunk(upload is None)
            if chunk is not None:
                return _piece_of(chunk, self.call)
            # While the rest of the request is sent, the timeout is that of writes, which is the call's own.
            if not streamed.wait(streamed.read_timeout) and not streamed.is_sending():
                streamed.close()
                return _TOO_SLOW

    def close(self) -> None:
        """End the call, whatever is left of it."""
        self._streamed.close()


class AwaitedExchange:
    """A call of a task."""

    def __init__(self, call: TransportCall, pieces: AsyncIterable[bytes] | None) -> None:
        self.call = call
        self._streamed = call.streamed
        self._upload = None if pieces is None else AsyncUpload(call.streamed, pieces)
        self._wait: Callable[[_weir.StreamedCallHandle, float | None], Awaitable[bool]] = changed

    async def outcome(self) -> _weir.ResponseHandle:
        """Begin the call, and wait for its outcome, but for what is left of the body."""
        streamed, upload = self._streamed, self._upload
        try:
            streamed.begin_on_loop()
        except RuntimeError:
            streamed.begin_on_thread()
            self._wait = changed_elsewhere
        while True:
            if upload is not None:
                streamed.arm()
                await upload.feed()
            if (handle := streamed.outcome(upload is None)) is not None:
                return handle
            await self._wait(streamed, None)

    async def chunk(self) -> bytes | BrokenBody:
        """Wait for the next piece of the response's body; it is empty at the end."""
        streamed, upload = self._streamed, self._upload
        while True:
            if upload is not None:
                streamed.arm()
                await upload.feed()
            chunk = streamed.chunk(upload is None)
            if chunk is not None:
                return _piece_of(chunk, self.call)
            if not await self._wait(streamed, streamed.read_timeout) and not streamed.is_sending():
                streamed.close()
                return _TOO_SLOW

    async def close(self) -> None:
        """End the call, whatever is left of it."""
        self._streamed.close()
        if self._upload is not None:
            await self._upload.aclose()
