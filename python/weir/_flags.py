"""Python values -> texts of flags."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from os import PathLike, fspath
from typing import TypeAlias

__all__ = ["Flag", "texts_by_name"]

_One: TypeAlias = str | int | float | timedelta | PathLike[str]

Flag: TypeAlias = bool | _One | Iterable[_One] | Mapping[str, float] | None
"""Value of a flag of a command: True for a flag without a value, several values for a repeatable one, a mapping for
weights (``{"good": 8, "error": 1}``), a `timedelta` for a time; None and False omit the flag."""


def texts_by_name(flags: Mapping[str, Flag]) -> dict[str, list[str]]:
    """Return the texts of flags by their names; a flag without a value has none."""
    given = {name: value for name, value in flags.items() if value is not None and value is not False}
    return {name: [] if value is True else _texts(name, value) for name, value in given.items()}


def _texts(name: str, value: Flag) -> list[str]:
    """Format the values of a flag, one text per repetition."""
    if isinstance(value, Mapping):
        return [",".join(f"{key}={weight}" for key, weight in value.items())]
    if isinstance(value, timedelta):
        return [f"{value / timedelta(microseconds=1):.0f}us"]
    if isinstance(value, PathLike):
        return [fspath(value)]
    if isinstance(value, str | int | float):
        return [str(value)]
    if isinstance(value, Iterable):
        return [text for one in value for text in _texts(name, one)]
    raise TypeError(
        f"{name}: a flag takes text, a number, a timedelta, a path or several of them, not {type(value).__name__}"
    )
