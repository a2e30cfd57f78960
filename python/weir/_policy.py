"""Policies of calls: `Hedge`, `Retry`, `Budget`, `Success`. Plain values, validated by the client."""

from __future__ import annotations

import json as json_module
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from weir._errors import UsageError
from weir._redaction import representation
from weir._time import Time

__all__ = ["Budget", "Hedge", "Retry", "Success"]

_Cause: TypeAlias = int | str | tuple[int, int]


@dataclass(frozen=True, slots=True)
class Hedge:
    """Hedge stage: further attempts of a call that has no success yet. The first success is the response.

    >>> weir.Hedge(after=0.3, attempts=2)  # no success after 300 ms, or a failed attempt: two more

    Attributes:
        after: Time from the stage before (first stage: from the start of the call): seconds, a `timedelta`, text such
            as ``"300ms"``; a quantile of recent first attempts at this host such as ``"p95"`` (never, with fewer than
            100); or None: only after a failure.
        attempts: Extra attempts that start together; in [1, 16].
        on_failure: Start at once when an attempt fails.
    """

    __module__ = "weir"

    after: Time | None = "p95"
    attempts: int = 1
    on_failure: bool = True


@dataclass(frozen=True, slots=True)
class Retry:
    """Retry policy: new attempts in place of failed ones, after a backoff with jitter.

    Attributes:
        times: Maximum retries per call.
        on: Retryable failures: kinds (``"dns"``, ``"connect"``, ``"tls"``, ``"timeout"``, ``"closed"``, ``"reset"``,
            ``"protocol"``, ``"body"``, ``"header"``) and statuses (``503``, ``"5xx"``, ``(500, 504)``: from, to);
            one or several. None is dns, connect, closed, reset, timeout, 429, and 502 to 504.
        backoff: Minimum and maximum backoff; each is random, up to three times the one before.
        retry_after: Wait at least for the response's Retry-After; without time for that there is no retry.
    """

    __module__ = "weir"

    times: int = 2
    on: _Cause | Iterable[_Cause] | None = None
    backoff: tuple[Time, Time] = (0.025, 1.0)
    retry_after: bool = True

    def __post_init__(self) -> None:
        """Copy iterables; one failure is the only one."""
        if self.on is not None:
            object.__setattr__(self, "on", (self.on,) if isinstance(self.on, int | str) else tuple(self.on))


@dataclass(frozen=True, slots=True)
class Budget:
    """Retry budget: bound on the extra attempts (hedges and retries) of a client, so that a slow upstream recovers.

    In each `window`: at most `fraction` x calls + `min_per_s` x window. The default is one that a script of calls in
    sequence does not meet.

    Attributes:
        fraction: Extra attempts per call that began in the window; in [0, 100].
        min_per_s: Extra attempts per second, however few the calls; `min_per_s` x `window` has to be whole.
        window: Length of the sliding window.
    """

    __module__ = "weir"

    fraction: float = 0.05
    min_per_s: float = 25.0
    window: Time = 10.0


@dataclass(frozen=True, slots=True, repr=False)
class Success:
    """Rules of a successful response; all of them have to match.

    Attributes:
        status: Statuses: ``200``, ``(200, 404)``, ``"2xx"``, ``"200-299"``; None for any.
        json: Whether the body has to be JSON.
        schema: JSON Schema of the body.
        headers: Required headers, with their values.
    """

    __module__ = "weir"

    status: int | str | Iterable[int | str] | None = "2xx"
    json: bool = False
    schema: Mapping[str, Any] | None = None
    headers: Mapping[str, str] | None = None

    def __post_init__(self) -> None:
        """Copy iterables."""
        if self.status is not None and not isinstance(self.status, int | str):
            object.__setattr__(self, "status", tuple(self.status))

    def __repr__(self) -> str:
        """Return the rules; values of headers with secret names are hidden."""
        return representation(self)

    @property
    def _schema_text(self) -> str | None:
        if self.schema is None:
            return None
        try:
            return json_module.dumps(self.schema)
        except (TypeError, ValueError) as error:
            raise UsageError(f"schema: {error}; give a JSON Schema as a dict") from error
