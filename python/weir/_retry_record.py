"""What `weir.retry` reports: events and statistics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from weir import _decisions

__all__ = ["RetryEvent", "RetryStatistics"]


@dataclass(frozen=True, slots=True)
class RetryEvent:
    """Retry that was decided on, before its wait.

    Attributes:
        name: Name of the function or block.
        attempt: Number of the failed attempt, from 1.
        exception: Exception of the failed attempt; None if `until` rejected its result.
        result: Result that `until` rejected, else None.
        wait: Time until the next attempt in seconds.
        elapsed: Time since the start of the call in seconds.
        remaining: Time until the deadline in seconds; None without one.
    """

    __module__ = "weir"

    name: str
    attempt: int
    exception: Exception | None
    result: Any
    wait: float
    elapsed: float
    remaining: float | None


class RetryStatistics:
    """Counts of all calls of a `weir.retry`, from all threads and tasks; each is read when it is used."""

    __module__ = "weir"
    __slots__ = ("_rules",)

    def __init__(self, rules: _decisions.RetryRulesHandle) -> None:
        """Wrap counts; for `weir.retry` only."""
        self._rules = rules

    @property
    def calls(self) -> int:
        """Calls of the function, or loops around the block, that began."""
        return self._rules.counts()[0]

    @property
    def attempts(self) -> int:
        """Attempts of all calls."""
        return self._rules.counts()[1]

    @property
    def retries(self) -> int:
        """Attempts after the first ones."""
        return self._rules.counts()[2]

    @property
    def succeeded(self) -> int:
        """Calls that ended with a result."""
        return self._rules.counts()[3]

    @property
    def failed(self) -> int:
        """Calls that ended with an exception."""
        return self._rules.counts()[4]

    @property
    def budget_denied(self) -> int:
        """Retries that the budget denied."""
        return self._rules.counts()[5]

    @property
    def waited_s(self) -> float:
        """Time that calls have waited between attempts, in seconds."""
        return self._rules.counts()[6] / 1e9

    def __repr__(self) -> str:
        """Return all counts."""
        calls, attempts, retries, succeeded, failed, denied, waited_ns = self._rules.counts()
        return (
            f"RetryStatistics(calls={calls}, attempts={attempts}, retries={retries}, succeeded={succeeded}, "
            f"failed={failed}, budget_denied={denied}, waited_s={waited_ns / 1e9:.3f})"
        )
