"""Python values as flags of the command line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from os import PathLike, fspath
from typing import TypeAlias

__all__ = ["Flag", "arguments"]

_One: TypeAlias = str | int | float | timedelta | PathLike[str]

Flag: TypeAlias = bool | _One | Iterable[_One] | Mapping[str, float] | None
"""A flag of a command: True for one without a value, several values for one that is repeatable, a mapping for shares
(``{"good": 8, "error": 1}``); a `timedelta` for a time; None and False leave it out."""


def arguments(flags: Mapping[str, Flag]) -> list[str]:
    """Write flags as the command line takes them."""
    args: list[str] = []
    for name, value in flags.items():
        if value is None or value is False:
            continue
        flag = "--" + name.replace("_", "-")
        args += [flag] if value is True else [f"{flag}={text}" for text in _texts(name, value)]
    return args


def _texts(name: str, value: Flag) -> list[str]:
    """Write a value once for each time that the flag is given."""
    if isinstance(value, Mapping):
        return [",".join(f"{key}={share}" for key, share in value.items())]
    if isinstance(value, timedelta):
        return [f"{value / timedelta(microseconds=1):.0f}us"]
    if isinstance(value, PathLike):
        return [fspath(value)]
    if isinstance(value, str | int | float):
        return [str(value)]
    if isinstance(value, Iterable):
        return [text for one in value for text in _texts(name, one)]
    raise TypeError(f"{name}: {type(value).__name__} is no value of a flag")
