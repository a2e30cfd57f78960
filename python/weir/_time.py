"""Durations, as arguments."""

from datetime import timedelta
from typing import TypeAlias

__all__ = ["Time"]

Time: TypeAlias = float | timedelta | str
"""Duration: seconds, a `timedelta`, or text such as ``"300ms"``, ``"1.5s"``, ``"2m"``, ``"1h"``."""
