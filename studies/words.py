"""Format numbers with units for findings, with three significant digits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any


class Spread(list[float]):
    """Median, lowest and highest of the rounds."""

    @property
    def median(self) -> float:
        """Median of the rounds."""
        return self[0]

    @property
    def low(self) -> float:
        """Lowest round."""
        return self[1]

    @property
    def high(self) -> float:
        """Highest round."""
        return self[2]


Figure = float | Spread


def _middle(value: Figure) -> float:
    return value.median if isinstance(value, Spread) else float(value)


def number(value: Figure) -> str:
    """Format a number: 1234.5 -> 1,230; 40.04 -> 40.0; 0.01234 -> 0.0123."""
    value = _middle(value)
    short = float(f"{value:.3g}")
    if abs(short) >= 100 or short == int(short) == value:
        return f"{short:,.0f}"
    if abs(short) >= 10:
        return f"{short:.1f}"
    return f"{short:.2f}" if abs(short) >= 1 else f"{short:.3g}"


def count(value: Figure) -> str:
    """Format a whole number, with all digits."""
    return f"{_middle(value):,.0f}"


def per_second(value: Figure) -> str:
    """Format a rate."""
    return f"{number(value)}/s"


def share(value: Figure) -> str:
    """Format a fraction as a percentage: 0.123 -> 12.3%."""
    percent = _middle(value) * 100
    return f"{percent:.0f}%" if percent in {0, 50, 100} else f"{float(f'{percent:.3g}'):g}%"


def ms(value: Figure) -> str:
    """Format milliseconds, as microseconds or seconds if small or large."""
    value = _middle(value)
    if 0 < value < 0.1:
        return f"{number(value * 1000)} µs"
    return f"{number(value)} ms" if value < 1000 else f"{number(value / 1000)} s"


def us(value: Figure) -> str:
    """Format microseconds, as milliseconds if large."""
    value = _middle(value)
    return f"{number(value)} µs" if value < 1000 else ms(value / 1000)


def mib(value: Figure) -> str:
    """Format memory."""
    return f"{number(value)} MiB"


def ratio(value: Figure | None) -> str:
    """Format a factor: x 2.04, or +4.2% if close to one; None is unknown."""
    if value is None:
        return "-"
    value = _middle(value)
    if 0.5 < value < 2:
        return f"{(value - 1) * 100:+.1f}%"
    return f"x {number(value)}"


UNITS: dict[str, Callable[[Any], str]] = {
    "number": number,
    "count": count,
    "per_second": per_second,
    "share": share,
    "ms": ms,
    "us": us,
    "mib": mib,
    "ratio": ratio,
}


def interval(ends: Sequence[float] | None, unit: str = "ratio") -> str:
    """Format an interval by its ends."""
    return "-" if ends is None else f"{UNITS[unit](ends[0])} to {UNITS[unit](ends[1])}"


def spread(value: Spread, unit: str) -> str:
    """Format the median with the range of the rounds; alone if all look the same."""
    low, middle, high = (UNITS[unit](of) for of in (value.low, value.median, value.high))
    return middle if low == high else f"{middle} ({low} … {high})"


def table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Format a table in Markdown; the first column is text, the others are numbers."""
    for row in rows:
        if len(row) != len(header):
            raise ValueError(f"{len(header)} columns, but a row of {len(row)}: {row}")
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    return "\n".join(f"| {' | '.join(str(cell) for cell in line)} |" for line in lines)
