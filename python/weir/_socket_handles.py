"""WebSockets of tasks, of the native module."""

from weir._weir import SocketOpen, SocketStep

__all__ = ["SocketOpen", "SocketStep"]
