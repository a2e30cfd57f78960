"""Number of users over time, as classes of locustfiles give it."""

from __future__ import annotations

import time
from typing import Any, ClassVar

__all__ = ["LoadTestShape"]

_MAX_TICKS = 24 * 3600


class LoadTestShape:
    """Number of users over time: `tick` returns it, with the rate at which users come and go, or None at the end."""

    abstract: ClassVar[bool] = True
    runner: Any = None
    use_common_options: ClassVar[bool] = False
    _now_s: float | None = None

    def __init_subclass__(cls, **given: Any) -> None:
        """Mark a class as one that is played."""
        super().__init_subclass__(**given)
        if "abstract" not in vars(cls):
            cls.abstract = False

    def __init__(self) -> None:
        """Begin at the time 0."""
        self._started_s = time.monotonic()

    def reset_time(self) -> None:
        """Begin again at the time 0."""
        self._started_s = time.monotonic()
        self._now_s = None if self._now_s is None else 0.0

    def get_run_time(self) -> float:
        """Return the time since the start in seconds."""
        return time.monotonic() - self._started_s if self._now_s is None else self._now_s

    def get_current_user_count(self) -> int:
        """Return the number of users."""
        return int(getattr(self.runner, "target_user_count", 0))

    def tick(self) -> tuple[Any, ...] | None:
        """Return users and users per second, or None at the end."""
        return None


def played(shape: LoadTestShape) -> tuple[list[tuple[float, int]], float | None]:
    """Ask a shape once for each second; return steps of time and users, and the end.

    The answers must depend on `get_run_time()` alone, since they are known before the run.
    """
    steps: list[tuple[float, int]] = []
    count = 0
    for second in range(_MAX_TICKS):
        shape._now_s = float(second)
        asked = shape.tick()
        if asked is None:
            return steps, float(second)
        wanted, rate = max(0, round(asked[0])), float(asked[1] or 1)
        # Users come and go one by one, within the second that the shape is asked again after.
        for nth in range(min(abs(wanted - count), max(1, round(rate)))):
            count += 1 if wanted > count else -1
            steps.append((second + nth / max(rate, 1.0), count))
        if shape.runner is not None:
            shape.runner.target_user_count = count
    return steps, None
