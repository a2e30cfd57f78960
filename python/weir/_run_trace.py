"""Trace of a language model that a run has replayed."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from weir._run_parts import Percentiles


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedClient:
    """Client of a composition: what of it was sent, and the times of its responses.

    Times are in milliseconds, over the responses that succeeded after the warm-up.

    Attributes:
        name: Name; its scenario and its step have the same.
        sessions: Sessions that were to be sent: requests, or conversations of several.
        requests: Requests of these.
        input_tokens: Tokens of the prompts of these requests, as composed.
        output_tokens: Tokens of their responses, as composed.
        responses: Responses that succeeded.
        ttft_ms: Time to first token, from the intended start.
        tpot_ms: Time per output token after the first, of responses with two tokens and more.
        e2e_ms: Time from the intended start to the end of the response.
    """

    name: str
    sessions: int
    requests: int
    input_tokens: int
    output_tokens: int
    responses: int
    ttft_ms: Percentiles
    tpot_ms: Percentiles
    e2e_ms: Percentiles


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedTrace:
    """Trace of a language model that a run has replayed: what of it was sent, and what was left out.

    Attributes:
        file: File; ``-`` is stdin.
        format: Format: ``mooncake``, ``agentic``, ``bailian``, ``dynamo``, ``otel``, ``sharegpt``, ``burstgpt`` or
            ``azure``; ``clients`` of a composition, which has no lines.
        speed: Time of the trace divided by that of the run.
        lines: Lines that were read, without empty ones and a heading.
        requests: Requests that were to be sent.
        later_turns: Of these, requests that wait for others of their session.
        trace_s: Time from the first arrival to the last one in the trace, in seconds.
        input_tokens: Tokens of the prompts of these requests, as recorded.
        output_tokens: Tokens of their responses, as recorded.
        blocks: Blocks of a prefix cache that their prompts have, as recorded; 0 in a trace without any.
        left_out: Requests and lines that were left out by reason: ``broken``, ``too_long``, ``no_request``,
            ``no_tokens``, ``not_sampled``, ``out_of_order``, ``lost_turn``.
        first_broken: First broken line, with its place and problem; None if all could be read.
        clients: Clients of a composition, in order; empty of a recorded trace.
    """

    file: str
    format: Literal["mooncake", "agentic", "bailian", "dynamo", "otel", "sharegpt", "burstgpt", "azure", "clients"]
    speed: float
    lines: int
    requests: int
    later_turns: int
    trace_s: float
    input_tokens: int
    output_tokens: int
    blocks: int
    left_out: Mapping[str, int]
    first_broken: str | None
    clients: tuple[TracedClient, ...] = ()
