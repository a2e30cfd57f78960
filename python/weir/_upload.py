"""Bodies of requests that are sent piece by piece, as there is room for them."""

from __future__ import annotations

from collections.abc import AsyncIterable, Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from weir import _weir

__all__ = ["AsyncUpload", "Upload"]


def _as_bytes(piece: Any) -> bytes:
    return piece if isinstance(piece, bytes) else bytes(memoryview(piece))


class _Body:
    """State of a body that is sent piece by piece."""

    def __init__(self, streamed: _weir.StreamedCallHandle) -> None:
        self._streamed = streamed
        self._next: bytes | None = None
        self.has_ended = False

    def _end(self, error: str | None = None) -> None:
        """End the body; with the name of an error it breaks off."""
        self.has_ended = True
        self._streamed.end_body(error)


class Upload(_Body):
    """A body from an iterable. A piece is asked for only when there is room, so memory is bounded.

    Where the response comes before the body has ended, the rest is sent while the response is read.
    """

    def __init__(self, streamed: _weir.StreamedCallHandle, chunks: Iterable[bytes]) -> None:
        super().__init__(streamed)
        self._chunks = iter(chunks)

    def feed(self) -> None:
        """Send pieces until there is no room, of which a change of the streamed tells."""
        streamed = self._streamed
        while not self.has_ended:
            if not streamed.wants_body():
                self.has_ended = True
                return
            if self._next is None:
                try:
                    self._next = _as_bytes(next(self._chunks))
                except StopIteration:
                    self._end()
                    return
                except BaseException as error:
                    self._end(type(error).__name__)
                    raise
            # Pieces are kept until there is room, and empty ones are none.
            if self._next and not streamed.send(self._next):
                return
            self._next = None


class AsyncUpload(_Body):
    """A body from an asynchronous iterable; as `Upload` otherwise."""

    def __init__(self, streamed: _weir.StreamedCallHandle, chunks: AsyncIterable[bytes]) -> None:
        super().__init__(streamed)
        self._chunks: Any = aiter(chunks)

    async def feed(self) -> None:
        """Send pieces until there is no room, of which a change of the streamed tells."""
        streamed = self._streamed
        while not self.has_ended:
            if not streamed.wants_body():
                await self.aclose()
                return
            if self._next is None:
                try:
                    self._next = await self._in_time(anext(self._chunks))
                except StopAsyncIteration:
                    self._end()
                    return
                except BaseException as error:
                    self._end(type(error).__name__)
                    raise
                if self._next is None:
                    # The call ends by itself; the body must not look complete.
                    self.has_ended = True
                    return
            # Pieces are kept until there is room, and empty ones are none.
            if self._next and not streamed.send(self._next):
                return
            self._next = None

    async def _in_time(self, piece: Any) -> bytes | None:
        """Wait for a piece; None if the call's deadline passes before."""
        left = self._streamed.time_left()
        if left is None:
            return _as_bytes(await piece)
        import anyio  # noqa: PLC0415  httpx and httpx2 have it; calls without a deadline need it not

        with anyio.move_on_after(left):
            return _as_bytes(await piece)
        return None

    async def aclose(self) -> None:
        """Ask for no more pieces."""
        self.has_ended = True
        close = getattr(self._chunks, "aclose", None)
        if close is not None:
            await close()
