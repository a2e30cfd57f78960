"""Exceptions that locustfiles raise and catch."""

from __future__ import annotations

from weir._user_factory import StopUser

__all__ = [
    "CatchResponseError",
    "InterruptTaskSet",
    "LocustError",
    "MissingWaitTimeError",
    "RescheduleTask",
    "RescheduleTaskImmediately",
    "ResponseError",
    "RunOver",
    "StopTest",
    "StopUser",
    "UserEnd",
]


class LocustError(Exception):
    """Base class."""


class ResponseError(Exception):
    """A response is a failure."""


class CatchResponseError(Exception):
    """A response is a failure, decided by the task."""


class MissingWaitTimeError(LocustError):
    """A class has no wait time."""


class StopTest(Exception):  # noqa: N818  the name that Locust has
    """The run ends."""


class InterruptTaskSet(Exception):  # noqa: N818  the name that Locust has
    """A set of tasks ends, and its user goes on with the set around it."""

    def __init__(self, reschedule: bool = True) -> None:
        """End the set; with `reschedule` the next task follows at once."""
        super().__init__()
        self.reschedule = reschedule


class RescheduleTask(Exception):  # noqa: N818  the name that Locust has
    """A task ends, and another one follows after the wait."""


class RescheduleTaskImmediately(Exception):  # noqa: N818  the name that Locust has
    """A task ends, and another one follows at once."""


class RunOver(StopUser):
    """Nothing is sent any more: the run is over."""


class UserEnd(BaseException):
    """The load is over; a task is left as by an exit, which `except Exception` does not catch."""
