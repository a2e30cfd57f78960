"""Rate limits as a service counts them, and the maximum that any client could get accepted.

Written independently of weir's own limits, so that neither copies a fault of the other. Times are arguments, in seconds
of one clock; the weight of a request is 1 by default.
"""

from __future__ import annotations

import heapq
import math
import re
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable

#: Maximum rounding error of sums of times.
EPSILON_S = 1e-9


class Limit(ABC):
    """Count of a rate limit; a subclass for each kind."""

    def __init__(self, count: int, per_s: float) -> None:
        """Make an unused limit of `count` per `per_s`."""
        self.count, self.per_s = count, per_s
        self._working = 0

    def take(self, at_s: float, weight: int = 1) -> float:
        """Accept or reject a request; return 0 if accepted, else the seconds until it would be, `inf` if unknown."""
        wait_s = self._wait(at_s, weight)
        if wait_s == 0:
            self._working += weight
            self._spend(at_s, weight)
        return wait_s

    def force(self, at_s: float) -> None:
        """Count an accepted request of another client, also above the limit."""
        self._wait(at_s, 1)
        self._spend(at_s, 1)

    def finish(self, weight: int = 1) -> None:
        """End the work on an accepted request."""
        self._working -= weight

    @abstractmethod
    def remaining(self, at_s: float) -> int:
        """Return the number of requests that would be accepted now."""

    @abstractmethod
    def reset_s(self, at_s: float) -> float:
        """Return the seconds until the limit is unused again."""

    @abstractmethod
    def _wait(self, at_s: float, weight: int) -> float: ...

    @abstractmethod
    def _spend(self, at_s: float, weight: int) -> None: ...


class Bucket(Limit):
    """Token bucket: full at the start, refilled at a constant rate."""

    def __init__(self, count: int, per_s: float) -> None:
        """Make a full bucket of `count` tokens, with a new token each `per_s / count` seconds."""
        super().__init__(count, per_s)
        self._tokens, self._at_s = float(count), -math.inf

    def remaining(self, at_s: float) -> int:
        """Return the whole tokens."""
        return max(0, int(self._filled(at_s) + EPSILON_S))

    def reset_s(self, at_s: float) -> float:
        """Return the seconds until the bucket is full."""
        return (self.count - self._filled(at_s)) * self.per_s / self.count

    def _filled(self, at_s: float) -> float:
        self._tokens = min(float(self.count), self._tokens + (at_s - self._at_s) * self.count / self.per_s)
        self._at_s = at_s
        return self._tokens

    def _wait(self, at_s: float, weight: int) -> float:
        lacking = weight - self._filled(at_s)
        return lacking * self.per_s / self.count if lacking > EPSILON_S else 0.0

    def _spend(self, at_s: float, weight: int) -> None:
        self._tokens -= weight


class Fixed(Limit):
    """Fixed window: a count that is reset at every multiple of the window's length."""

    def __init__(self, count: int, per_s: float) -> None:
        """Make a limit of `count` in each window of `per_s`."""
        super().__init__(count, per_s)
        self._window, self._used = -1, 0

    def remaining(self, at_s: float) -> int:
        """Return the remaining count of the current window."""
        self._turn(at_s)
        return max(0, self.count - self._used)

    def reset_s(self, at_s: float) -> float:
        """Return the seconds until the next window."""
        self._turn(at_s)
        return (self._window + 1) * self.per_s - at_s

    def _turn(self, at_s: float) -> None:
        window = math.floor(at_s / self.per_s + EPSILON_S)
        if window != self._window:
            self._window, self._used = window, 0

    def _wait(self, at_s: float, weight: int) -> float:
        return 0.0 if weight <= self.remaining(at_s) else self.reset_s(at_s)

    def _spend(self, at_s: float, weight: int) -> None:
        self._used += weight


class Sliding(Limit):
    """Sliding window: a log of the requests accepted within its length."""

    def __init__(self, count: int, per_s: float) -> None:
        """Make a limit of `count` in any interval of `per_s`."""
        super().__init__(count, per_s)
        self._log: deque[float] = deque()

    def remaining(self, at_s: float) -> int:
        """Return the remaining count of the window that ends now."""
        while self._log and self._log[0] <= at_s - self.per_s + EPSILON_S:
            self._log.popleft()
        return max(0, self.count - len(self._log))

    def reset_s(self, at_s: float) -> float:
        """Return the seconds until the last request leaves the window."""
        return self._log[-1] + self.per_s - at_s if self.remaining(at_s) < self.count else 0.0

    def _wait(self, at_s: float, weight: int) -> float:
        over = weight - self.remaining(at_s)
        return self._log[over - 1] + self.per_s - at_s if over > 0 else 0.0

    def _spend(self, at_s: float, weight: int) -> None:
        self._log.extend([at_s] * weight)


class Concurrency(Limit):
    """Limit of concurrent requests, independent of time."""

    def remaining(self, at_s: float) -> int:
        """Return the free slots."""
        return max(0, self.count - self._working)

    def reset_s(self, at_s: float) -> float:
        """Return 0 without concurrent requests; otherwise the time is unknown."""
        return math.inf if self._working else 0.0

    def _wait(self, at_s: float, weight: int) -> float:
        return 0.0 if weight <= self.remaining(at_s) else math.inf

    def _spend(self, at_s: float, weight: int) -> None:
        pass


KINDS: dict[str, type[Limit]] = {
    "bucket": Bucket,
    "fixed": Fixed,
    "sliding": Sliding,
    "concurrency": Concurrency,
}
UNITS_S = {"ms": 0.001, "s": 1.0, "m": 60.0}


def read(text: str) -> Limit | None:
    """Parse a limit, as ``bucket:2000/10s``, ``fixed:100/1s``, ``sliding:20/1s`` or ``concurrency:5``; empty: none."""
    if not text:
        return None
    found = re.fullmatch(r"(\w+):(\d+)(?:/(\d+)(ms|s|m))?", text)
    if not found or found[1] not in KINDS or (found[1] == "concurrency") == bool(found[3]):
        raise ValueError(f"invalid limit {text!r}; write e.g. bucket:2000/10s or concurrency:5")
    return KINDS[found[1]](int(found[2]), int(found[3]) * UNITS_S[found[4]] if found[3] else 0.0)


def oracle(
    limit: Limit,
    *,
    begin_s: float,
    until_s: float,
    jobs: float = math.inf,
    weight: int = 1,
    others: Iterable[float] = (),
    work: Iterable[float] = (),
) -> list[float]:
    """Compute when requests would be accepted from a client that reads the service's count without network delay.

    Args:
        limit: Limit of the service, in its state at `begin_s`.
        begin_s: Time of the first request.
        until_s: Time of the end, also with jobs left.
        jobs: Number of requests to be accepted.
        weight: Weight of each request.
        others: Times of accepted requests of other users of the key.
        work: Durations of work on each request; zero without them.
    """
    times = iter(work)
    # At equal times, ends of work (0) come before requests of others (1).
    events = [(at_s, 1) for at_s in others]
    heapq.heapify(events)
    accepted: list[float] = []
    now_s = begin_s
    while now_s < until_s and len(accepted) < jobs:
        while events and events[0][0] <= now_s:
            at_s, kind = heapq.heappop(events)
            if kind:
                limit.force(at_s)
            else:
                limit.finish(weight)
        wait_s = limit.take(now_s, weight)
        if wait_s:
            now_s = min(now_s + wait_s, events[0][0] if events else math.inf)
            continue
        accepted.append(now_s)
        length_s = next(times, 0.0)
        if length_s:
            heapq.heappush(events, (now_s + length_s, 0))
        else:
            limit.finish(weight)
    return accepted
