"""Failures of calls, as kinds of exceptions of the libraries. The kinds are httpx's."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from weir import _weir
    from weir._errors import ClientError
    from weir._transport import TransportCall

__all__ = ["broken_off", "failure_kind", "is_last_status"]


def failure_kind(handle: _weir.ResponseHandle) -> tuple[str, str]:
    """Name the kind of exception of a failed call, and its message."""
    if handle.ended == "no_permit":
        return "PoolTimeout", "no permit for another concurrent call in time"
    if handle.ended == "deadline_exceeded" and not handle.attempt_count:
        return "PoolTimeout", "the deadline passed in the wait for a slot of rate, or for a permit; nothing was sent"
    if handle.ended == "deadline_exceeded":
        return "ReadTimeout", "the deadline passed"
    if handle.is_too_large:
        return "ReadError", f"the response is longer than {handle.max_response} bytes, max_response"
    attempts = handle.attempts
    if not attempts:
        return "ConnectError", "no attempt was sent"
    _, _, outcome, status, detail, _, _ = attempts[-1]
    text = detail or (f"status {status}" if status else outcome)
    if outcome == "closed":
        text = f"Server disconnected without sending a response. ({text})"
    return _BY_POINT.get(handle.failure_point) or _BY_OUTCOME.get(outcome, "RemoteProtocolError"), text


def broken_off(call: TransportCall, chunk: tuple[str, str, str]) -> tuple[str, str, ClientError | None, str]:
    """Name the exception of a body that breaks off, its message, its cause if weir has it, and the point."""
    kind, point, text = chunk
    if kind == "deadline":
        text = "the deadline passed while the body was read"
        return "ReadTimeout", text, call.late(text), point
    if kind == "closed":
        text = f"peer closed connection without sending complete message body ({text})"
    return _BY_POINT.get(point) or _OF_BODIES.get(kind, "RemoteProtocolError"), text, None, point


#: Kinds of exceptions by what failed of the exchange, where it is not the outcome alone.
_BY_POINT = {
    "connect_timeout": "ConnectTimeout",
    "write_timeout": "WriteTimeout",
    "stream": "RemoteProtocolError",
    "rate_limit": "ConnectError",
}

#: Kinds of exceptions of a call without a response, by the outcome of its last attempt.
_BY_OUTCOME = {
    "dns": "ConnectError",
    "connect": "ConnectError",
    "tls": "ConnectError",
    "timeout": "ReadTimeout",
    "reset": "ReadError",
    "request": "LocalProtocolError",
}

#: Kinds of exceptions of a body that breaks off, by the kind of its failure.
_OF_BODIES = {"timeout": "ReadTimeout", "reset": "ReadError", "body": "ReadError", "cancelled": "ReadError"}


def is_last_status(handle: _weir.ResponseHandle) -> bool:
    """Whether a call that failed has a response all the same, whose status says why."""
    return handle.ended == "failed" and bool(handle.status) and handle.attempts[-1][2] == "status"
