"""What locustfiles use of gevent: waits, locks and events between users."""

from __future__ import annotations

from weir._locust.greenlets import sleep

__all__ = ["BoundedSemaphore", "Event", "Semaphore"]

_INTERVAL_S = 0.01


class Semaphore:
    """Number of permits that users take and give back; waiting for one lets the other users go on."""

    def __init__(self, value: int = 1) -> None:
        """Begin with a number of permits."""
        self.counter = value

    def locked(self) -> bool:
        """Return whether there is no permit."""
        return self.counter <= 0

    def acquire(self, blocking: bool = True, timeout: float | None = None) -> bool:
        """Take a permit; without one wait for it."""
        if not self.wait(timeout if blocking else 0):
            return False
        self.counter -= 1
        return True

    def release(self) -> int:
        """Give a permit back."""
        self.counter += 1
        return self.counter

    def wait(self, timeout: float | None = None) -> int:
        """Wait until there is a permit."""
        waited_s = 0.0
        while self.counter <= 0 and (timeout is None or waited_s < timeout):
            sleep(_INTERVAL_S)
            waited_s += _INTERVAL_S
        return self.counter

    def __enter__(self) -> None:
        """Take a permit."""
        self.acquire()

    def __exit__(self, *_: object) -> None:
        """Give the permit back."""
        self.release()


class BoundedSemaphore(Semaphore):
    """Semaphore."""


class Event:
    """Flag that users wait for."""

    def __init__(self) -> None:
        """Begin unset."""
        self._is_set = False

    def is_set(self) -> bool:
        """Return whether the flag is set."""
        return self._is_set

    def set(self) -> None:
        """Set the flag."""
        self._is_set = True

    def clear(self) -> None:
        """Unset the flag."""
        self._is_set = False

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the flag is set."""
        waited_s = 0.0
        while not self._is_set and (timeout is None or waited_s < timeout):
            sleep(_INTERVAL_S)
            waited_s += _INTERVAL_S
        return self._is_set
