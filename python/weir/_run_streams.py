"""Streams of a run, and its requests to a language model."""

from dataclasses import dataclass

from weir._run_parts import Percentiles


@dataclass(frozen=True, slots=True, kw_only=True)
class Streams:
    """Responses of a run that were read as streams of events: those with a status below 400.

    Times are in milliseconds.

    Attributes:
        responses: Responses that ended, in any way: the sum of the six below.
        complete: Whole responses whose last event is complete.
        unfinished: Whole responses that ended within an event.
        stopped: Responses that ended on purpose, after a number of events.
        broken_off: Responses that broke off.
        stalled: Responses that stalled.
        timed_out: Responses that did not end within the timeout.
        without_events: Responses without any event, of those that ended.
        cut_off: Responses that were in flight when the run ended; none of those that ended.
        events: Events of all responses, also of those that were cut off; so are times and gaps.
        coalesced: Events that arrived together with the one before them; their gaps are 0.
        events_per_s: Events per second, by their arrival within the window.
        bytes_per_s: Bytes of bodies per second, by their arrival within the window.
        first_byte_ms: Time from the send to the first byte.
        first_event_ms: Time from the intended start to the first event.
        first_event_service_ms: Time from the send to the first event.
        gap_ms: Gaps between the events of a response, of all responses.
        longest_gap_ms: Longest gap of each response with two events and more.
        first_event_histogram: Histogram of `first_event_ms`, in the format of `histogram`.
        gap_histogram: Histogram of `gap_ms`, in the same format.
    """

    responses: int
    complete: int
    unfinished: int
    stopped: int
    broken_off: int
    stalled: int
    timed_out: int
    without_events: int
    cut_off: int
    events: int
    coalesced: int
    events_per_s: float
    bytes_per_s: float
    first_byte_ms: Percentiles
    first_event_ms: Percentiles
    first_event_service_ms: Percentiles
    gap_ms: Percentiles
    longest_gap_ms: Percentiles
    first_event_histogram: str
    gap_histogram: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Llm:
    """Requests of a run to a language model, over those that succeeded.

    Times are in milliseconds. A chunk is an event with a text that is not empty; tokens are those that the server
    reports in its usage.

    Attributes:
        requests: Requests that succeeded.
        good: Of these, requests that met all objectives; all without objectives.
        objectives: Objectives of each request, such as `ttft:500ms tpot:50ms`; empty without any.
        with_usage: Of these, requests whose response has the number of its tokens, or whose tokens were counted.
        with_counted_tokens: Of those with a number, requests whose tokens weir has counted, with a tokenizer, since the
            server does not.
        without_tokens: Of all that succeeded, requests whose response has no token.
        input_tokens: Tokens of prompts.
        output_tokens: Tokens of responses.
        chunks: Chunks of responses.
        tokens_per_chunk: Mean number of tokens per chunk; None without usage.
        broken_events: Events that are not JSON, of all requests.
        goodput_per_s: Requests that met all objectives per second, by the end of the response within the window.
        requests_per_s: Requests that succeeded per second, by the end of the response within the window.
        input_tokens_per_s: Tokens of prompts per second, by the first chunk within the window.
        output_tokens_per_s: Tokens of responses per second, by the chunks within the window.
        chunks_per_s: Chunks per second, by their arrival within the window.
        ttft_ms: Time to first token, from the intended start.
        ttft_service_ms: Time to first token, from the send.
        ttft_lateness_ms: Lateness of the send, by weir itself, of requests with a token: the part of `ttft_ms` that is
            the client's.
        ttft_read_delay_ms: Time from the arrival of the first token, by the kernel's timestamp, until it was read; not
            part of `ttft_ms`.
        ttft_unstamped: Requests whose first token has no timestamp of the kernel: the delay until it was read is
            unknown, and part of their `ttft_ms`.
        chunk_gap_ms: Gaps between chunks.
        tpot_ms: Time per output token after the first, of responses with two tokens and more.
        ntpot_ms: Normalized time per output token: from the intended start to the end, divided by the number of tokens.
        e2e_ms: Time from the intended start to the end of the response.
        ttft_histogram: Histogram of `ttft_ms`, in the format of `histogram`.
        chunk_gap_histogram: Histogram of `chunk_gap_ms`, in the same format.
        tpot_histogram: Histogram of `tpot_ms`, in the same format.
        ntpot_histogram: Histogram of `ntpot_ms`, in the same format; empty in runs of versions before it.
        e2e_histogram: Histogram of `e2e_ms`, in the same format.
    """

    requests: int
    good: int
    objectives: str
    with_usage: int
    with_counted_tokens: int
    without_tokens: int
    input_tokens: int
    output_tokens: int
    chunks: int
    tokens_per_chunk: float | None
    broken_events: int
    goodput_per_s: float
    requests_per_s: float
    input_tokens_per_s: float
    output_tokens_per_s: float
    chunks_per_s: float
    ttft_ms: Percentiles
    ttft_service_ms: Percentiles
    ttft_lateness_ms: Percentiles
    ttft_read_delay_ms: Percentiles
    ttft_unstamped: int
    chunk_gap_ms: Percentiles
    tpot_ms: Percentiles
    ntpot_ms: Percentiles
    e2e_ms: Percentiles
    ttft_histogram: str
    chunk_gap_histogram: str
    tpot_histogram: str
    ntpot_histogram: str
    e2e_histogram: str
