"""Tables in Markdown, and their numbers."""

from __future__ import annotations

from collections.abc import Iterable

Row = list[str]


def table(header: Row, rows: Iterable[Row]) -> str:
    """Format a table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def number(value: float | None, form: str) -> str:
    """Format a number, or a dash if it is unknown."""
    return "-" if value is None else form.format(value)
