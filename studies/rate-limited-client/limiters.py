"""When may a key send? The answers of the original three stages, in whole milliseconds of the client's clock."""

from __future__ import annotations

from collections import deque

RATE = 20
WINDOW_MS = 1000
INTERVAL_MS = WINDOW_MS / RATE
# How long the first two sleep before they look again.
NAP_MS = 1.0


class Ring:
    """At most 20 within a second, counted when they are sent."""

    def __init__(self) -> None:
        """Nothing was sent yet."""
        self._sent: deque[int] = deque([-10 * WINDOW_MS] * RATE, maxlen=RATE)

    def wait_ms(self, now: int) -> float:
        """How long to sleep before asking again; 0: send."""
        return NAP_MS if now - self._sent[0] <= WINDOW_MS else 0

    def sent(self, now: int) -> None:
        """A request goes out."""
        self._sent.append(now)

    def answered(self, took_ms: float) -> None:
        """Its answer is there."""


class Interval(Ring):
    """The same, and at least 50 ms between two requests."""

    def wait_ms(self, now: int) -> float:
        """How long to sleep before asking again; 0: send."""
        return NAP_MS if now - self._sent[-1] <= INTERVAL_MS else super().wait_ms(now)


class Buffer(Ring):
    """The ring with a second that is longer by what answers take on average, 30 to 50 ms."""

    LEAST_MS, FIRST_MS, MOST_MS = 30, 40, 50

    def __init__(self) -> None:
        """Nothing was answered yet."""
        super().__init__()
        self._took: deque[float] = deque(maxlen=100)
        self._buffer_ms = self.FIRST_MS

    def wait_ms(self, now: int) -> float:
        """How long to sleep before asking again; 0: send."""
        left = self._sent[0] + WINDOW_MS + self._buffer_ms - now
        return max(left, NAP_MS) if left >= 0 else 0

    def answered(self, took_ms: float) -> None:
        """Its answer is there."""
        self._took.append(took_ms)
        mean = sum(self._took) / len(self._took)
        self._buffer_ms = min(self.MOST_MS, max(self.LEAST_MS, int(mean * 1.1)))


DOCUMENTED: dict[str, type[Ring]] = {"interval": Interval, "ring": Ring, "buffer": Buffer}
