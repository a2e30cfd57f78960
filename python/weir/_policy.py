"""What a call may do for its answer: `Hedge`, `Retry`, `Budget`, `Success`. Plain values; a client reads them."""

from __future__ import annotations

import json as json_module
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from weir._errors import UsageError
from weir._load import Time

__all__ = ["Budget", "Hedge", "Retry", "Success"]

_Cause: TypeAlias = int | str | tuple[int, int]


@dataclass(frozen=True, slots=True)
class Hedge:
    """A stage of a hedge: more copies of a call that has no answer yet. The first *success* is the answer.

    >>> weir.Hedge(after=0.3, copies=2)  # the call's first 300 ms are over, or its attempt has failed: two more

    A later stage of several counts its time from the stage before it.
    """

    __module__ = "weir"

    after: Time | None = "p95"
    """When: seconds, a `timedelta`, ``"300ms"``, a percentile of what recent calls took such as ``"p95"`` (never,
    while too few are known), or None: only after a failure."""
    copies: int = 1
    """How many, together; in [1, 16]."""
    on_failure: bool = True
    """Whether a failed attempt starts it at once."""


@dataclass(frozen=True, slots=True)
class Retry:
    """New attempts in place of failed ones."""

    __module__ = "weir"

    times: int = 2
    """At most so many per call."""
    on: Iterable[_Cause] | None = None
    """After what: kinds of failures (``"dns"``, ``"connect"``, ``"tls"``, ``"timeout"``, ``"closed"``, ``"reset"``,
    ``"protocol"``, ``"body"``, ``"header"``) and statuses (``503``, ``"5xx"``, ``(500, 504)``: from, to). None is
    dns, connect, closed, reset, timeout, 429, and 502 to 504."""
    backoff: tuple[Time, Time] = (0.025, 1.0)
    """The shortest and the longest wait before one; they grow, and are spread at random."""
    retry_after: bool = True
    """Whether to wait at least as long as an answer's Retry-After says; if that is too long, there is no retry."""

    def __post_init__(self) -> None:
        """Take any iterable."""
        if self.on is not None:
            object.__setattr__(self, "on", tuple(self.on))


@dataclass(frozen=True, slots=True)
class Budget:
    """What all extra attempts (hedges and retries) of a client may come to, so that a slow upstream is not buried.

    In any `window` there are at most `floor` extra attempts and `share` of the calls that began in it.
    """

    __module__ = "weir"

    share: float = 0.05
    """Extra attempts per call; in [0, 100]."""
    floor: int = 1
    """Extra attempts per window, however few the calls are."""
    window: Time = 1.0
    """The window's length."""


@dataclass(frozen=True, slots=True)
class Success:
    """When an answer is one. All that is given has to hold."""

    __module__ = "weir"

    status: int | str | Iterable[int | str] | None = "2xx"
    """Which statuses: ``200``, ``(200, 404)``, ``"2xx"``, ``"200-299"``; None for any."""
    json: bool = False
    """Whether the body has to be JSON."""
    schema: Mapping[str, Any] | None = None
    """A JSON Schema that the body has to follow."""
    headers: Mapping[str, str] | None = None
    """Headers that it has to have, with these values."""

    def __post_init__(self) -> None:
        """Take any iterable."""
        if self.status is not None and not isinstance(self.status, int | str):
            object.__setattr__(self, "status", tuple(self.status))

    @property
    def _schema_text(self) -> str | None:
        if self.schema is None:
            return None
        try:
            return json_module.dumps(self.schema)
        except (TypeError, ValueError) as error:
            raise UsageError(f"schema: {error}; give a JSON Schema as a dict") from error
