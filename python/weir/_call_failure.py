"""Exceptions of calls that failed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weir._errors import AllAttemptsFailed, ClientError, ConnectFailed, DeadlineExceeded, ResponseTooLarge, TimedOut
from weir._response import Response, attempts_of
from weir._weir import without_secrets

if TYPE_CHECKING:
    from weir import _weir

__all__ = ["failure"]


def failure(handle: _weir.ResponseHandle, request: str | None = None) -> ClientError:
    """Make the exception of a failed call; `request` is its method and URL, without secrets."""
    attempts = attempts_of(handle)
    response = Response(handle) if handle.status else None
    request = request or f"{handle.request.method} {without_secrets(handle.request.url)}"
    outcomes = ", ".join(map(str, attempts)) or "none was sent"
    if handle.not_sent:
        outcomes = f"{outcomes}; {handle.not_sent}"
    if handle.is_too_large:
        most = handle.max_response
        message = f"{request}: the response is longer than {most} bytes, max_response; attempts: {outcomes}"
        return ResponseTooLarge(message, attempts, response)
    if handle.ended == "deadline_exceeded":
        return DeadlineExceeded(
            f"{request}: no response after {handle.elapsed_s:.3g} s; attempts: {outcomes}", attempts, response
        )
    kinds = {attempt.outcome for attempt in attempts}
    kind = AllAttemptsFailed
    if kinds and kinds <= {"dns", "connect", "tls"}:
        kind = ConnectFailed
    elif kinds == {"timeout"}:
        kind = TimedOut
    return kind(f"{request}: no success; attempts: {outcomes}", attempts, response)
