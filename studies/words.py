"""Numbers with their units, as findings show them: three digits that count."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any


class Spread(list[float]):
    """The median of the rounds, the lowest and the highest."""

    @property
    def median(self) -> float:
        """The middle."""
        return self[0]

    @property
    def low(self) -> float:
        """The least."""
        return self[1]

    @property
    def high(self) -> float:
        """The most."""
        return self[2]


Figure = float | Spread


def _middle(value: Figure) -> float:
    return value.median if isinstance(value, Spread) else float(value)


def number(value: Figure) -> str:
    """1234.5 -> 1,230; 40.04 -> 40.0; 0.01234 -> 0.0123."""
    value = _middle(value)
    short = float(f"{value:.3g}")
    if abs(short) >= 100 or short == int(short) == value:
        return f"{short:,.0f}"
    if abs(short) >= 10:
        return f"{short:.1f}"
    return f"{short:.2f}" if abs(short) >= 1 else f"{short:.3g}"


def count(value: Figure) -> str:
    """A whole number, all of it."""
    return f"{_middle(value):,.0f}"


def per_second(value: Figure) -> str:
    """A rate."""
    return f"{number(value)}/s"


def share(value: Figure) -> str:
    """0.123 -> 12.3%."""
    percent = _middle(value) * 100
    return f"{percent:.0f}%" if percent in {0, 50, 100} else f"{float(f'{percent:.3g}'):g}%"


def ms(value: Figure) -> str:
    """Milliseconds, or seconds where they are long, or microseconds."""
    value = _middle(value)
    if 0 < value < 0.1:
        return f"{number(value * 1000)} µs"
    return f"{number(value)} ms" if value < 1000 else f"{number(value / 1000)} s"


def us(value: Figure) -> str:
    """Microseconds, or milliseconds where they are long."""
    value = _middle(value)
    return f"{number(value)} µs" if value < 1000 else ms(value / 1000)


def mib(value: Figure) -> str:
    """Memory."""
    return f"{number(value)} MiB"


def ratio(value: Figure | None) -> str:
    """A factor that something is multiplied by: x 2.04; close to one: +4.2%. None is unknown."""
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
    """From one end to the other."""
    return "-" if ends is None else f"{UNITS[unit](ends[0])} to {UNITS[unit](ends[1])}"


def spread(value: Spread, unit: str) -> str:
    """The median, and from the lowest round to the highest; once if they look the same."""
    low, middle, high = (UNITS[unit](of) for of in (value.low, value.median, value.high))
    return middle if low == high else f"{middle} ({low} … {high})"


def table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A table in Markdown; the first column is words, the others are numbers."""
    for row in rows:
        if len(row) != len(header):
            raise ValueError(f"{len(header)} columns, but a row of {len(row)}: {row}")
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    return "\n".join(f"| {' | '.join(str(cell) for cell in line)} |" for line in lines)
