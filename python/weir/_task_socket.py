"""WebSockets that tasks hold."""

from __future__ import annotations

import types
from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Any

from weir import _weir
from weir._errors import NoResponse

if TYPE_CHECKING:
    from types import TracebackType

__all__: list[str] = []

_SEND = _weir.SocketStep.send
_RECEIVE = _weir.SocketStep.receive
_CLOSE = _weir.SocketStep.close
_NORMAL = 1000
RECEIVE_TIMEOUT_S = 30.0
"""Longest wait for a message, if neither class nor call has one."""


@types.coroutine
def _step(step: object) -> Generator[object, Any, Any]:
    return (yield step)


class WebSocketBlock:
    """WebSocket to open, by ``async with self.websocket("/chat") as ws`` or ``ws = await self.websocket("/chat")``."""

    def __init__(self, opening: _weir.SocketOpen, name: str, timeout_s: float | None) -> None:
        """Take what is opened when the block begins."""
        self._opening = opening
        self._name = name
        self._timeout_s = timeout_s
        self._socket: WebSocket | None = None

    async def _open(self) -> WebSocket:
        """Open it."""
        number, subprotocol = await _step(self._opening)
        return WebSocket(number, subprotocol, self._name, self._timeout_s)

    def __await__(self) -> Generator[Any, Any, WebSocket]:
        """Open it; the task closes it by `WebSocket.close`."""
        return self._open().__await__()

    async def __aenter__(self) -> WebSocket:
        """Open it."""
        self._socket = await self._open()
        return self._socket

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close it."""
        # At the end of the load the task waits for nothing any more, and the load closes it.
        if kind is not GeneratorExit and self._socket is not None:
            await self._socket.close()


def block_of(
    request: _weir.ScriptRequest, name: str, subprotocols: str | Sequence[str], timeout_s: float | None
) -> WebSocketBlock:
    """Return the block of a WebSocket that a request opens; `name` is that of its step."""
    offered = [subprotocols] if isinstance(subprotocols, str) else list(subprotocols)
    wait_s = RECEIVE_TIMEOUT_S if timeout_s is None else timeout_s
    return WebSocketBlock(_weir.SocketOpen(request, offered), name, wait_s)


def http_form(url: str) -> str:
    """Return a URL of WebSocket as one of HTTP, and others as they are."""
    return f"http{url[2:]}" if url[:6].lower().startswith(("ws://", "wss://")) else url


class WebSocket:
    """WebSocket of a task.

    A message that is sent is a request, and the first message that comes behind it is its response: its time counts
    from the send. Messages that nothing was sent for are counted in `Run.websocket` alone.

    Attributes:
        subprotocol: Subprotocol that the service has selected; None without one.
        close_code: Code with which the service has closed it; None before that.
        close_reason: Its reason.
    """

    def __init__(self, number: int, subprotocol: str | None, name: str, timeout_s: float | None) -> None:
        """Take the number of an open connection."""
        self._number = number
        self._name = f"{name} message"
        self._timeout_s = timeout_s
        self.subprotocol = subprotocol
        self.close_code: int | None = None
        self.close_reason = ""

    async def send(self, data: str | bytes, *, name: str | None = None) -> None:
        """Send a message, without waiting for its response.

        Args:
            data: Text, or bytes as a binary message.
            name: Name of the step that it is counted under. Default: that of the WebSocket, and "message".

        Raises:
            NoResponse: The WebSocket has ended.
        """
        is_text = isinstance(data, str)
        if not is_text and not isinstance(data, bytes | bytearray | memoryview):
            raise TypeError(f"data: text or bytes, not {type(data).__name__}; json.dumps() makes text of an object")
        content = data.encode() if isinstance(data, str) else bytes(data)
        await _step(_SEND(self._number, content, is_text, name or self._name))

    async def receive(self, *, timeout: float | None = None) -> str | bytes:
        """Wait for the next message.

        Args:
            timeout: Longest wait in seconds. Default: that of the WebSocket.

        Returns:
            Text, or the bytes of a binary message.

        Raises:
            NoResponse: None comes in time, or the WebSocket has ended.
        """
        message = await self._next(self._timeout_s if timeout is None else float(timeout))
        if message is None:
            raise NoResponse(f"the WebSocket was closed by the service: {self.close_code}")
        return message

    async def _next(self, timeout_s: float | None) -> str | bytes | None:
        came = await _step(_RECEIVE(self._number, timeout_s))
        if isinstance(came, tuple):
            self.close_code, self.close_reason = came
            return None
        return came  # type: ignore[no-any-return]

    def __aiter__(self) -> WebSocket:
        """Return itself."""
        return self

    async def __anext__(self) -> str | bytes:
        """Wait for the next message, however long; the end of the WebSocket ends the loop."""
        message = await self._next(None)
        if message is None:
            raise StopAsyncIteration
        return message

    async def close(self, code: int = _NORMAL, reason: str = "") -> None:
        """Close it.

        Args:
            code: Close code: 1000, or one of 3000 to 4999.
            reason: Reason, at most 123 bytes.
        """
        if code != _NORMAL and not 3000 <= code <= 4999:
            raise ValueError(f"code: {code} is not one that a client sends; write 1000, or 3000 to 4999")
        await _step(_CLOSE(self._number, code, reason))

    def __repr__(self) -> str:
        """Return whether it is open."""
        return f"<WebSocket {'open' if self.close_code is None else self.close_code}>"
