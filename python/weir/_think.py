"""Think times: from their notation to seconds."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable
from datetime import timedelta

from weir._errors import UsageError

__all__: list[str] = []

_UNITS_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "": 1.0}


def think_time(think: object) -> Callable[[random.Random], float]:
    """Return a function from random choices to a wait in seconds."""
    if think is None:
        return lambda _: 0.0
    if isinstance(think, timedelta):
        think = think.total_seconds()
    if isinstance(think, int | float) and math.isfinite(think) and think >= 0:
        return lambda _, seconds=float(think): seconds  # type: ignore[misc]
    if isinstance(think, str):
        words = think.split()
        if len(words) == 2 and words[0] == "exponential":
            mean = seconds_of(words[1])
            return lambda choices: choices.expovariate(1 / mean) if mean else 0.0
        low, separator, high = think.partition("..")
        least, most = seconds_of(low), seconds_of(high if separator else low)
        if least <= most:
            return lambda choices: least + choices.random() * (most - least)
    raise UsageError(f"invalid think {think!r}; write seconds, '500ms', '1s..3s', 'exponential 2s' or a function")


def seconds_of(text: str) -> float:
    """Return seconds of a text such as 500ms."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h|)\s*", text)
    if found is None:
        raise UsageError(f"think: invalid time {text!r}; write e.g. 500ms or 2s")
    return float(found[1]) * _UNITS_S[found[2]]
