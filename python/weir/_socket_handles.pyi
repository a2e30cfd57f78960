"""WebSockets of tasks, of the native module."""

from typing import final

from weir._script_handles import ScriptRequest

__all__ = ["SocketOpen", "SocketStep"]

@final
class SocketOpen:
    """WebSocket that a task opens."""

    def __new__(cls, request: ScriptRequest, subprotocols: list[str]) -> SocketOpen: ...

class SocketStep:
    """What a task asks of its WebSocket."""

    @final
    class Send(SocketStep):
        def __new__(cls, socket: int, data: bytes, is_text: bool, name: str) -> SocketStep.Send: ...

    @final
    class Receive(SocketStep):
        def __new__(cls, socket: int, timeout_s: float | None) -> SocketStep.Receive: ...

    @final
    class Close(SocketStep):
        def __new__(cls, socket: int, code: int, reason: str) -> SocketStep.Close: ...
