"""Hooks of locustfiles."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, TypeVar

from weir._locust.exception import InterruptTaskSet, RescheduleTask, RescheduleTaskImmediately, StopUser

__all__ = ["EventHook", "Events"]

_Handler = TypeVar("_Handler", bound=Callable[..., object])

_NAMES = (
    "request",
    "user_error",
    "report_to_master",
    "worker_report",
    "worker_connect",
    "spawning_complete",
    "quitting",
    "quit",
    "init",
    "init_command_line_parser",
    "test_start",
    "test_stopping",
    "test_stop",
    "reset_stats",
    "cpu_warning",
    "heartbeat_sent",
    "heartbeat_received",
    "usage_monitor",
)


class EventHook:
    """Functions that are called when something happens."""

    def __init__(self) -> None:
        """Begin without functions."""
        self._handlers: list[Callable[..., object]] = []

    def add_listener(self, handler: _Handler) -> _Handler:
        """Add a function."""
        self._handlers.append(handler)
        return handler

    def remove_listener(self, handler: Callable[..., object]) -> None:
        """Remove a function."""
        self._handlers.remove(handler)

    def fire(self, *, reverse: bool = False, **given: Any) -> None:
        """Call all functions; what they raise is logged."""
        for handler in reversed(self._handlers) if reverse else list(self._handlers):
            try:
                handler(**given)
            except (InterruptTaskSet, RescheduleTask, RescheduleTaskImmediately, StopUser):
                # The task that the listener is called in ends by them.
                raise
            except Exception:
                logging.getLogger("weir").exception("an event listener of the locustfile raised an exception")

    @property
    def has_listeners(self) -> bool:
        """Whether there are functions."""
        return bool(self._handlers)


class Events:
    """All hooks, by name."""

    def __init__(self) -> None:
        """Make all hooks."""
        for name in _NAMES:
            setattr(self, name, EventHook())

    def __getattr__(self, name: str) -> Any:
        """Reject a hook that is not there."""
        if name in {"request_success", "request_failure"}:
            raise AttributeError(
                f"events.{name} is of Locust before 2.0; write events.request, which has the exception"
            )
        raise AttributeError(f"events.{name} is not there in weir; there are {', '.join(_NAMES)}")
