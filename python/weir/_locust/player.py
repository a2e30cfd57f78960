"""What plays a user: its state is here, so that all names of a locustfile's classes are the file's own."""

from __future__ import annotations

import time
from typing import Any

from weir._task import user_random
from weir._user_factory import HeadLines

__all__ = ["Player"]

_WAIT_AFTER_ERROR_S = 1.0


class Player:
    """Player of a user.

    Attributes:
        environment: Environment of the run.
        random: Random choices of the user, the same in each run with the same seed.
        begun_s: Beginning of the user in monotonic seconds.
        headers: Headers of its clients' requests, with those of the command line.
        main: Greenlet of the loop.
    """

    def __init__(self, environment: Any, seed: int, number: int) -> None:
        """Play the user of a number."""
        self.environment = environment
        self.random = user_random(seed, number)
        self.begun_s = time.monotonic()
        self.headers: dict[str, str] = {}
        self.main: Any = None

    @property
    def given_lines(self) -> str:
        """Lines of the command line's headers."""
        return HeadLines((), self.environment._given_headers).given

    def end_task(self, has_failed: bool, wait_s: float | None) -> None:
        """End the iteration; without a wait the user does not go on."""
        is_last = self.environment._is_stopped
        self.main.switch((has_failed, None if is_last else wait_s))

    def wait(self, instance: Any, owner: Any, *, has_failed: bool) -> None:
        """End the iteration, and wait as a set of tasks of this owner does; one whose wait fails waits a second."""
        try:
            wait_s = float(instance.wait_time())
        except Exception as error:
            has_failed = True
            self.add_error(f"{type(owner).__name__}.wait_time", error, instance)
            wait_s = _WAIT_AFTER_ERROR_S
        self.end_task(has_failed, wait_s)

    def add_error(self, owner: str, error: Exception, instance: Any) -> None:
        """Count an exception of a class and method, and tell the listeners."""
        self.environment._task_errors.add(owner, error)
        hook = self.environment.events.user_error
        if hook.has_listeners:
            hook.fire(user_instance=instance, exception=error, tb=error.__traceback__)
