"""OpenTelemetry spans of calls through transports: one for the call, and one below it for each attempt.

Only where the program has imported OpenTelemetry's API, and an SDK records. Names and attributes are those of the
semantic conventions for HTTP clients.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

from weir import _weir

if TYPE_CHECKING:
    from weir._call_log import CallLog

__all__ = ["CallSpan"]


class CallSpan:
    """Span of a call that goes on."""

    def __init__(self, trace: Any, span: Any, attributes: dict[str, str | int]) -> None:
        self._trace = trace
        self._span = span
        self._attributes = attributes
        self._began_ns = time.time_ns()

    @classmethod
    def begin(
        cls, method: str, url: str, origin: tuple[bool, str, int], headers: list[tuple[bytes, bytes]]
    ) -> CallSpan | None:
        """Begin a span, and add its context to the headers; None where no spans are recorded."""
        trace = sys.modules.get("opentelemetry.trace")
        if trace is None:
            return None
        attributes: dict[str, str | int] = {
            "http.request.method": method,
            "server.address": origin[1],
            "server.port": origin[2],
        }
        shown = {"url.full": _weir.without_secrets(url)}
        tracer = trace.get_tracer("weir", _weir.__version__)
        span = tracer.start_span(method, kind=trace.SpanKind.CLIENT, attributes=attributes | shown)
        if not span.is_recording():
            return None
        from opentelemetry import propagate  # noqa: PLC0415  it is there, and has not been needed before

        carrier: dict[str, str] = {}
        propagate.inject(carrier, trace.set_span_in_context(span))
        given = {name.lower() for name, _ in headers}
        fields = [(name.encode(), value.encode()) for name, value in carrier.items()]
        headers.extend((name, value) for name, value in fields if name.lower() not in given)
        return cls(trace, span, attributes)

    def end(self, status: int, log: CallLog) -> None:
        """End the span, with those of the attempts."""
        trace, span = self._trace, self._span
        tracer = trace.get_tracer("weir", _weir.__version__)
        for attempt in log.attempts:
            start = self._began_ns + round(attempt.started_ms * 1e6)
            attributes = dict(self._attributes)
            if attempt.number > 1:
                attributes["http.request.resend_count"] = attempt.number - 1
            if attempt.status is not None:
                attributes["http.response.status_code"] = attempt.status
            child = tracer.start_span(
                f"{self._attributes['http.request.method']} attempt",
                context=trace.set_span_in_context(span),
                kind=trace.SpanKind.CLIENT,
                start_time=start,
                attributes={
                    **attributes,
                    "weir.attempt.reason": attempt.reason,
                    "weir.attempt.outcome": attempt.outcome,
                },
            )
            if attempt.outcome not in {"won", "cancelled"}:
                _set_failed(trace, child, str(attempt.status or attempt.outcome))
            child.end(end_time=start + round(attempt.duration_ms * 1e6))
        if status:
            span.set_attribute("http.response.status_code", status)
        if not status or status >= 400:
            last = log.attempts[-1].outcome if log.attempts else "not_sent"
            _set_failed(trace, span, str(status or last))
        span.end()

    def cancel(self, error: BaseException) -> None:
        """End the span of a call that was cancelled."""
        _set_failed(self._trace, self._span, type(error).__name__)
        self._span.end()


def _set_failed(trace: Any, span: Any, kind: str) -> None:
    span.set_attribute("error.type", kind)
    span.set_status(trace.StatusCode.ERROR)
