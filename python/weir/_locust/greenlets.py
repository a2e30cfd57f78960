"""Users of locustfiles as greenlets: a request or a wait switches back to the loop."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

from weir._locust.exception import UserEnd

__all__ = ["Ending", "require_greenlet", "start", "use_cooperative_sleep"]

_sleep = time.sleep


def require_greenlet(path: str) -> None:
    """Check that the package greenlet is there.

    Raises:
        SystemExit: It is not.
    """
    try:
        import_module("greenlet")
    except ModuleNotFoundError as error:
        install = f"{sys.executable} -m pip install greenlet requests"
        raise SystemExit(f"{path} is a locustfile, which needs the package greenlet; write {install}") from error


def start(user: Any, play: Callable[[Any], None]) -> tuple[object, Any]:
    """Make the greenlet in which a user is played; return it, and the function that resumes it."""
    module: Any = import_module("greenlet")
    user._weir_player.main = module.getcurrent()
    made = module.greenlet(lambda _: play(user))
    made.is_weir_user = True
    return made, made.switch


class Ending:
    """End of a user's greenlet: an exception leaves what it does, and its `on_stop` may send and wait."""

    def __init__(self, user: Any) -> None:
        """Take the greenlet of a user, which is not running."""
        self._user = user
        self._has_begun = False

    def resume(self, value: object) -> object:
        """Continue the greenlet; the first call begins its end."""
        if self._has_begun:
            return self._user.switch(value)
        self._has_begun = True
        return self._user.throw(UserEnd)


def _current() -> Any:
    module: Any = import_module("greenlet")
    return module.getcurrent()


def sleep(seconds: Any = 0) -> None:
    """Wait; within a task the other users go on."""
    current = _current()
    if getattr(current, "is_weir_user", False):
        current.parent.switch(float(seconds))
    else:
        _sleep(seconds)


def use_cooperative_sleep() -> None:
    """Let `time.sleep` wait for the task alone, as under Locust."""
    time.sleep = sleep
