"""Rate limits as a service counts them, and the most that any client could get accepted by one.

Written apart from weir's own limits, so that neither copies a fault of the other. Times are seconds of one clock and
arguments; a request weighs 1 if nothing else is given.
"""

from __future__ import annotations

import heapq
import math
import re
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable

#: Sums of times are off by less than this.
EPSILON_S = 1e-9


class Limit(ABC):
    """The count of one limit; subclasses have the kinds."""

    def __init__(self, count: int, per_s: float) -> None:
        """A limit of which nothing is used: `count` per `per_s`."""
        self.count, self.per_s = count, per_s
        self._working = 0

    def take(self, at_s: float, weight: int = 1) -> float:
        """0 if the request is accepted; else the seconds until it would be, `inf` where no time helps."""
        wait_s = self._wait(at_s, weight)
        if wait_s == 0:
            self._working += weight
            self._spend(at_s, weight)
        return wait_s

    def force(self, at_s: float) -> None:
        """A request of another client that was accepted, whatever the count is."""
        self._wait(at_s, 1)
        self._spend(at_s, 1)

    def finish(self, weight: int = 1) -> None:
        """The end of the work on an accepted request."""
        self._working -= weight

    @abstractmethod
    def remaining(self, at_s: float) -> int:
        """What would be accepted now."""

    @abstractmethod
    def reset_s(self, at_s: float) -> float:
        """The seconds until all of the limit is there again."""

    @abstractmethod
    def _wait(self, at_s: float, weight: int) -> float: ...

    @abstractmethod
    def _spend(self, at_s: float, weight: int) -> None: ...


class Bucket(Limit):
    """A token bucket: full at the start, tokens come back evenly."""

    def __init__(self, count: int, per_s: float) -> None:
        """A full bucket of `count` tokens, each of which is back after `per_s / count`."""
        super().__init__(count, per_s)
        self._tokens, self._at_s = float(count), -math.inf

    def remaining(self, at_s: float) -> int:
        """Whole tokens."""
        return max(0, int(self._filled(at_s) + EPSILON_S))

    def reset_s(self, at_s: float) -> float:
        """Until the bucket is full."""
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
    """A fixed window: a count that starts anew at every multiple of its length."""

    def __init__(self, count: int, per_s: float) -> None:
        """`count` in each window of `per_s`."""
        super().__init__(count, per_s)
        self._window, self._used = -1, 0

    def remaining(self, at_s: float) -> int:
        """What is left of this window."""
        self._turn(at_s)
        return max(0, self.count - self._used)

    def reset_s(self, at_s: float) -> float:
        """Until the next window."""
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
    """A sliding window: the log of what was accepted within its length."""

    def __init__(self, count: int, per_s: float) -> None:
        """`count` in any `per_s`."""
        super().__init__(count, per_s)
        self._log: deque[float] = deque()

    def remaining(self, at_s: float) -> int:
        """What the window that ends now has room for."""
        while self._log and self._log[0] <= at_s - self.per_s + EPSILON_S:
            self._log.popleft()
        return max(0, self.count - len(self._log))

    def reset_s(self, at_s: float) -> float:
        """Until the last request leaves the window."""
        return self._log[-1] + self.per_s - at_s if self.remaining(at_s) < self.count else 0.0

    def _wait(self, at_s: float, weight: int) -> float:
        over = weight - self.remaining(at_s)
        return self._log[over - 1] + self.per_s - at_s if over > 0 else 0.0

    def _spend(self, at_s: float, weight: int) -> None:
        self._log.extend([at_s] * weight)


class Concurrency(Limit):
    """Requests that are worked on at once; time has no part in it."""

    def remaining(self, at_s: float) -> int:
        """Free places."""
        return max(0, self.count - self._working)

    def reset_s(self, at_s: float) -> float:
        """Known only where nothing is worked on."""
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
    """A limit such as ``bucket:2000/10s``, ``fixed:100/1s``, ``sliding:20/1s``, ``concurrency:5``; ``""`` is none."""
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
    """When the requests of a client would be accepted that reads the service's own count and is at no distance.

    Args:
        limit: The service's limit, in its state at `begin_s`.
        begin_s: The first request.
        until_s: The end, whatever is left by then.
        jobs: Requests to be accepted.
        weight: What each of them counts.
        others: When requests of other users of the key were accepted.
        work: How long the service works on each request; without it, no time at all.
    """
    times = iter(work)
    # Ends of work count before requests of others at the same time.
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
