"""Log that a run has replayed."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """Log that a run has replayed: what of it was sent, what was left out, and whether responses are those of the log.

    Attributes:
        files: Files, in order; ``-`` is stdin.
        format: Format of the lines: ``combined``, ``json`` or another name, or the pattern that was given.
        speed: Time of the log divided by that of the run.
        lines: Lines that were read, without empty ones and comments.
        requests: Requests of the log that were to be sent.
        first_unix_s: Start of the first of these requests by the log, in seconds since 1970; None without any.
        last_unix_s: Start of the last one.
        methods: These requests by method.
        status: These requests by the status that the log has; ``-`` without one.
        left_out: Lines that were left out by reason: ``broken``, ``too_long``, ``no_request``, ``unsafe_method``,
            ``filtered``, ``outside_time``, ``out_of_order``, ``unsendable``.
        first_broken: First broken line, with its place and problem; None if all could be read.
        same_class: Responses whose status has the same class as in the log, such as 2xx.
        other_class: Responses with another class, by that of the log and that of the response: ``2xx to 5xx``.
    """

    files: tuple[str, ...]
    format: str
    speed: float
    lines: int
    requests: int
    first_unix_s: float | None
    last_unix_s: float | None
    methods: Mapping[str, int]
    status: Mapping[str, int]
    left_out: Mapping[str, int]
    first_broken: str | None
    same_class: int
    other_class: Mapping[str, int]
