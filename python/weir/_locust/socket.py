"""WebSockets of locustfiles: calls that wait within the task, on those of weir's own users."""

from __future__ import annotations

from collections.abc import Coroutine, Iterator
from typing import TYPE_CHECKING, Any

from weir._locust.exception import RunOver, UserEnd

if TYPE_CHECKING:
    from types import TracebackType

    from weir._task_socket import WebSocket, WebSocketBlock

__all__ = ["TaskWebSocket", "opened"]


class TaskWebSocket:
    """WebSocket of a task of a locustfile, for a `with` statement or until `close`.

    Attributes:
        subprotocol: Subprotocol that the service has selected; None without one.
    """

    def __init__(self, socket: WebSocket, player: Any) -> None:
        """Wrap an open WebSocket of the user that a player plays."""
        self._socket = socket
        self._player = player
        self.subprotocol = socket.subprotocol

    @property
    def close_code(self) -> int | None:
        """Code with which the service has closed it; None before that."""
        return self._socket.close_code

    @property
    def close_reason(self) -> str:
        """Reason of the close."""
        return self._socket.close_reason

    def send(self, data: str | bytes, *, name: str | None = None) -> None:
        """Send a message, without waiting for its response."""
        _finished(self._socket.send(data, name=name), self._player)

    def receive(self, *, timeout: float | None = None) -> str | bytes:
        """Wait for the next message."""
        message: str | bytes = _finished(self._socket.receive(timeout=timeout), self._player)
        return message

    def close(self, code: int = 1000, reason: str = "") -> None:
        """Close it."""
        _finished(self._socket.close(code, reason), self._player)

    def __iter__(self) -> Iterator[str | bytes]:
        """Iterate over messages, however long each takes, to the end of the WebSocket."""
        while (message := _finished(self._socket._next(None), self._player)) is not None:
            yield message

    def __enter__(self) -> TaskWebSocket:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close it; at the end of the load that does."""
        if kind is None or not issubclass(kind, UserEnd | RunOver | GeneratorExit):
            self.close()

    def __repr__(self) -> str:
        """Return whether it is open."""
        return repr(self._socket)


def opened(block: WebSocketBlock, player: Any) -> TaskWebSocket:
    """Open a WebSocket for the user that a player plays."""
    return TaskWebSocket(_finished(block._open(), player), player)


def _finished(steps: Coroutine[Any, Any, Any], player: Any) -> Any:
    """Return what a coroutine of steps returns; each of them switches to the loop."""
    came: Any = None
    error: BaseException | None = None
    try:
        while True:
            step = steps.send(came) if error is None else steps.throw(error)
            came, error = None, None
            try:
                came = player.main.switch(step)
            except Exception as raised:
                error = raised
    except StopIteration as end:
        return end.value
    finally:
        steps.close()
