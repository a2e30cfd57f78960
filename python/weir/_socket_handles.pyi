"""WebSockets of tasks, of the native module."""

from typing import final

from weir._script_handles import ScriptRequest

__all__ = ["SocketOpen", "SocketStep"]

@final
class SocketOpen:
    """WebSocket that a task opens."""

    def __new__(cls, request: ScriptRequest, subprotocols: list[str]) -> SocketOpen: ...

@final
class SocketStep:
    """What a task asks of its WebSocket."""

    @staticmethod
    def send(socket: int, data: bytes, is_text: bool, name: str) -> SocketStep:
        """Send a message."""

    @staticmethod
    def receive(socket: int, timeout_s: float | None) -> SocketStep:
        """Wait for the next message."""

    @staticmethod
    def close(socket: int, code: int, reason: str) -> SocketStep:
        """Close."""
