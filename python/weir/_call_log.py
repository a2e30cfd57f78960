"""Attempt log of a call through another library's transport."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weir._response import Attempt, attempts_of

if TYPE_CHECKING:
    from weir import _weir

__all__ = ["CallLog", "attempts"]


class CallLog:
    """Attempts of a call through a transport.

    It is `response.extensions["weir"]` of httpx2 and httpx, and `response.weir` of requests. Its parts are computed on
    first use: `attempts`, `won`, `not_sent`, `elapsed`, `trailers`.
    """

    __module__ = "weir"
    __slots__ = ("_attempts", "_call", "_handle")

    _attempts: tuple[Attempt, ...] | None

    def __init__(self, handle: _weir.ResponseHandle, call: _weir.StreamedCallHandle | None) -> None:
        """Wrap an outcome; for transports only."""
        self._handle = handle
        self._call = call
        self._attempts = None

    @property
    def attempts(self) -> tuple[Attempt, ...]:
        """Attempts, in the order of their start."""
        if self._attempts is None:
            self._attempts = attempts_of(self._handle)
        return self._attempts

    @property
    def won(self) -> Attempt | None:
        """The attempt whose response it is; None if none was successful."""
        return next((attempt for attempt in self.attempts if attempt.won), None)

    @property
    def not_sent(self) -> str | None:
        """Extra attempts that were not sent, and what stopped them; None if all were."""
        return self._handle.not_sent

    @property
    def elapsed(self) -> float:
        """Seconds from the start of the call to the head of the response; to its end if the body came with it."""
        return self._handle.elapsed_s

    @property
    def trailers(self) -> list[tuple[bytes, bytes]]:
        """Trailers of the response; empty before the end of its body."""
        return [] if self._call is None else self._call.trailers()

    def __str__(self) -> str:
        """Return the attempts in a line, each with its time from the start of the call."""
        parts = [
            f"attempt {one.number} at {one.started_ms:.0f} ms: {one} after {one.duration_ms:.0f} ms"
            for one in self.attempts
        ]
        return "; ".join([*parts, *([self.not_sent] if self.not_sent else [])])

    def __repr__(self) -> str:
        """Return the attempts."""
        return f"<weir.CallLog {self}>"


def attempts(response_or_exception: object) -> tuple[Attempt, ...]:
    """List the attempts of a call: of its response, or of the library's exception.

    Returns:
        Attempts, in the order of their start; empty for what did not come by a transport of weir.
    """
    found = getattr(response_or_exception, "weir", None)
    if found is None:
        found = getattr(response_or_exception, "extensions", {}).get("weir")
    if found is None and isinstance(response_or_exception, BaseException):
        found = response_or_exception.__cause__
    listed: tuple[Attempt, ...] = getattr(found, "attempts", ())
    return listed
