"""Streamed responses in the intervals of a run's time series."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class PointTimes:
    """Times in an interval of a run, in milliseconds; each is None without any.

    Attributes:
        count: Number of times.
        p50: Median.
        p90: 90th percentile.
        p99: 99th percentile.
        max: Maximum.
    """

    count: int
    p50: float | None
    p90: float | None
    p99: float | None
    max: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmPoint:
    """Requests to a language model in an interval of a run: tokens by when they came, requests by when they ended.

    Attributes:
        requests: Requests that succeeded.
        good: Of these, requests that met all objectives; all without objectives.
        output_tokens: Tokens of their responses, as the server counts them.
        ttft_ms: Time to first token, from the intended start.
        tpot_ms: Time per output token after the first.
        chunk_gap_ms: Gaps between events with tokens.
        chunk_gap_histogram: Histogram of `chunk_gap_ms`, in the format of `gap_histogram`.
    """

    requests: int
    good: int
    output_tokens: int
    ttft_ms: PointTimes
    tpot_ms: PointTimes
    chunk_gap_ms: PointTimes
    chunk_gap_histogram: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamPoint:
    """Streamed responses in an interval of a run: events by when they came, responses by when they ended.

    Attributes:
        events: Events in the interval.
        first_event_ms: Time from the intended start to the first event, of first events in the interval.
        gap_ms: Gaps between events.
        gap_histogram: Histogram of `gap_ms`: HdrHistogram V2 at two digits, in nanoseconds, base64; empty without any.
        llm: Requests to a language model; None if none succeeded and no token came.
    """

    events: int
    first_event_ms: PointTimes
    gap_ms: PointTimes
    gap_histogram: str = field(repr=False)
    llm: LlmPoint | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WebSocketPoint:
    """Connections of WebSocket in an interval.

    Attributes:
        held: Connections that were open at the end of the interval.
        upgraded: Connections whose upgrade succeeded in the interval.
    """

    held: int
    upgraded: int
