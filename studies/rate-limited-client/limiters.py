"""The limiters of the original's three stages, in whole milliseconds of the client's clock."""

from __future__ import annotations

from collections import deque

RATE = 20
WINDOW_MS = 1000
INTERVAL_MS = WINDOW_MS / RATE
# Polling interval of the first two.
POLL_MS = 1.0


class Ring:
    """At most 20 requests within a second, counted at their sending."""

    def __init__(self) -> None:
        """Start without a sent request."""
        self._sent: deque[int] = deque([-10 * WINDOW_MS] * RATE, maxlen=RATE)

    def wait_ms(self, now: int) -> float:
        """Return the time until the next check; 0: send."""
        return POLL_MS if now - self._sent[0] <= WINDOW_MS else 0

    def sent(self, now: int) -> None:
        """Count a request."""
        self._sent.append(now)

    def responded(self, duration_ms: float) -> None:
        """Take the duration of a request with a response."""


class Interval(Ring):
    """The ring, with at least 50 ms between two requests."""

    def wait_ms(self, now: int) -> float:
        """Return the time until the next check; 0: send."""
        return POLL_MS if now - self._sent[-1] <= INTERVAL_MS else super().wait_ms(now)


class Buffer(Ring):
    """The ring with a second that is longer by the mean response time, 30 to 50 ms."""

    MIN_MS, INITIAL_MS, MAX_MS = 30, 40, 50

    def __init__(self) -> None:
        """Start without a response."""
        super().__init__()
        self._durations: deque[float] = deque(maxlen=100)
        self._buffer_ms = self.INITIAL_MS

    def wait_ms(self, now: int) -> float:
        """Return the time until the next check; 0: send."""
        left = self._sent[0] + WINDOW_MS + self._buffer_ms - now
        return max(left, POLL_MS) if left >= 0 else 0

    def responded(self, duration_ms: float) -> None:
        """Take the duration of a request with a response."""
        self._durations.append(duration_ms)
        mean = sum(self._durations) / len(self._durations)
        self._buffer_ms = min(self.MAX_MS, max(self.MIN_MS, int(mean * 1.1)))


DOCUMENTED: dict[str, type[Ring]] = {"interval": Interval, "ring": Ring, "buffer": Buffer}
