"""Waits between tasks."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

__all__ = ["between", "constant", "constant_pacing", "constant_throughput"]

_Wait = Callable[[Any], float]


def between(min_wait: float, max_wait: float) -> _Wait:
    """Return a wait that is random between two times in seconds."""
    return lambda instance: min_wait + _player(instance).random.random() * (max_wait - min_wait)


def constant(wait_time: float) -> _Wait:
    """Return a wait of a time in seconds."""
    return lambda _: wait_time


def constant_pacing(wait_time: float) -> _Wait:
    """Return a wait until `wait_time` seconds after the last task's begin."""

    def wait(instance: Any) -> float:
        now = time.monotonic()
        begun_s = getattr(instance, "_weir_begun_s", None) or _player(instance).begun_s
        due = getattr(instance, "_weir_paced_s", begun_s) + wait_time
        # A user that is late does not catch up.
        instance._weir_paced_s = max(due, now)
        return float(instance._weir_paced_s - now)

    return wait


def constant_throughput(task_runs_per_second: float) -> _Wait:
    """Return a wait that keeps a user at a number of tasks per second."""
    return constant_pacing(1 / task_runs_per_second)


def _player(instance: Any) -> Any:
    """Return the player of a user, or of the user of a set of tasks."""
    return getattr(instance, "_weir_player", None) or instance._user._weir_player
