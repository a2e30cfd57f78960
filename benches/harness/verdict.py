"""A goal, and how a measured number is held against it."""

from __future__ import annotations

from dataclasses import dataclass

UNKNOWN = "not measured"


@dataclass(frozen=True)
class Goal:
    """One promise and what became of it."""

    promise: str
    measured: str
    verdict: str  # "reached", "missed by x %" or "not measured"


def at_most(promise: str, value: float | None, limit: float, form: str) -> Goal:
    """No more than the limit."""
    return _held(promise, value, None if value is None else value / limit - 1, form)


def at_least(promise: str, value: float | None, limit: float, form: str) -> Goal:
    """No less than the limit."""
    return _held(promise, value, None if value is None else 1 - value / limit, form)


def within(promise: str, value: float | None, aim: float, allowed: float, form: str) -> Goal:
    """Off the aim by no more than what is allowed."""
    return _held(promise, value, None if value is None else (abs(value - aim) - allowed) / aim, form)


def percent(share: float) -> str:
    """A share for a person."""
    return f"{100 * share:.2g} %" if share < 1 else f"{100 * share:,.0f} %"


def _held(promise: str, value: float | None, excess: float | None, form: str) -> Goal:
    if value is None or excess is None:
        return Goal(promise, "", UNKNOWN)
    return Goal(promise, form.format(value), "reached" if excess <= 0 else f"missed by {percent(excess)}")
