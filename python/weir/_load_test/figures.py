"""Figures of a load test as text, as in weir's own reports."""

from __future__ import annotations

from weir._compare import Comparison, Verdict

__all__ = ["change", "changes", "milliseconds", "number"]


def number(value: float) -> str:
    """Format a number with three digits, or as a whole one: ``12,345``, ``498``, ``49.8``, ``0.25``."""
    if value >= 99.95:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 9.995 else f"{value:.2f}" if value else "0"


def milliseconds(value: float | None) -> str:
    """Format a time in milliseconds: ``344us``, ``12.3ms``, ``1.25s``; ``-`` for one that was not measured."""
    if value is None:
        return "-"
    if value >= 999.5:
        return f"{number(value / 1000)}s"
    return f"{number(value)}ms" if value >= 0.9995 or not value else f"{number(value * 1000)}us"


def change(comparison: Comparison) -> str:
    """Return the change against the last good runs in a few words."""
    pair = comparison.pairs[0]
    if comparison.is_worse:
        return f"worse: {changes(comparison)}"
    shown = [_change(verdict) for verdict in pair.verdicts if verdict.name in {"p99", "rate"}]
    finding = {"same": "the same", "inconclusive": "no verdict"}.get(pair.finding, pair.finding)
    return f"{finding}: {', '.join(shown)}"


def changes(comparison: Comparison, *, with_figures: bool = False) -> str:
    """Return all that is worse: ``p99 +12.5%, login p95 x 2.1``; with figures ``p99 +12.5% (8.00ms to 9.00ms)``."""
    pair = comparison.pairs[0]
    rows = [("", verdict) for verdict in pair.verdicts]
    rows += [(f"{step.name} ", verdict) for step in pair.steps for verdict in step.verdicts]
    return ", ".join(
        prefix + _change(verdict) + (_figures(verdict) if with_figures else "")
        for prefix, verdict in rows
        if verdict.finding == "worse"
    )


def _change(verdict: Verdict) -> str:
    """Return the effect as weir's own comparison does: a doubling and more is a multiple."""
    effect = verdict.effect
    if effect is None:
        return f"{verdict.name} -"
    if verdict.scale == "points":
        return f"{verdict.name} {effect * 100:+.1f} pp"
    if effect < 2:
        return f"{verdict.name} {(effect - 1) * 100:+.1f}%"
    return f"{verdict.name} x {effect:.{0 if effect >= 10 else 1}f}"


def _figures(verdict: Verdict) -> str:
    if verdict.base is None or verdict.other is None:
        return ""
    return f" ({_figure(verdict, verdict.base)} to {_figure(verdict, verdict.other)})"


def _figure(verdict: Verdict, value: float) -> str:
    if verdict.scale == "points":
        return f"{value:.2%}"
    return milliseconds(value) if verdict.unit == "ms" else f"{number(value)}{verdict.unit}"
