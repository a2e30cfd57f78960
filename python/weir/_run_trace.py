"""Trace of a language model that a run has replayed."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedTrace:
    """Trace of a language model that a run has replayed: what of it was sent, and what was left out.

    Attributes:
        file: File; ``-`` is stdin.
        format: Format: ``mooncake``, ``agentic``, ``bailian``, ``dynamo``, ``otel``, ``sharegpt``, ``burstgpt`` or
            ``azure``.
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
    """

    file: str
    format: Literal["mooncake", "agentic", "bailian", "dynamo", "otel", "sharegpt", "burstgpt", "azure"]
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
