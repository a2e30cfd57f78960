"""Goals, and their comparison with measured numbers."""

from __future__ import annotations

from dataclasses import dataclass, replace

UNKNOWN = "not measured"


@dataclass(frozen=True)
class Goal:
    """Goal with its result."""

    promise: str
    measured: str
    verdict: str  # "reached", "missed by x%", with its cause where that is known, or "not measured"

    def because(self, cause: str) -> Goal:
        """Return the goal with this cause, if it is missed and there is one."""
        if not cause or not self.verdict.startswith("missed"):
            return self
        return replace(self, verdict=f"{self.verdict}: {cause}")


def at_most(promise: str, value: float | None, limit: float, form: str) -> Goal:
    """Make a goal of an upper limit."""
    return _held(promise, value, None if value is None else value / limit - 1, form)


def at_least(promise: str, value: float | None, limit: float, form: str) -> Goal:
    """Make a goal of a lower limit."""
    return _held(promise, value, None if value is None else 1 - value / limit, form)


def within(promise: str, value: float | None, aim: float, allowed: float, form: str) -> Goal:
    """Make a goal of a tolerance: a deviation from `aim` of at most `allowed`."""
    return _held(promise, value, None if value is None else (abs(value - aim) - allowed) / aim, form)


def percent(share: float) -> str:
    """Format a fraction as a percentage."""
    return f"{100 * share:.2g}%" if share < 1 else f"{100 * share:,.0f}%"


def _held(promise: str, value: float | None, excess: float | None, form: str) -> Goal:
    if value is None or excess is None:
        return Goal(promise, "", UNKNOWN)
    return Goal(promise, form.format(value), "reached" if excess <= 0 else f"missed by {percent(excess)}")
