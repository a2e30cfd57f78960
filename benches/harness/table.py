"""Tables of Markdown, and numbers in them."""

from __future__ import annotations

from collections.abc import Iterable

Row = list[str]


def table(header: Row, rows: Iterable[Row]) -> str:
    """The lines of a table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def number(value: float | None, form: str) -> str:
    """The number, or a dash if it is not known."""
    return "-" if value is None else form.format(value)
