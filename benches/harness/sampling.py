"""What `weir gate` has counted, read from its /metrics again and again while it works."""

from __future__ import annotations

import http.client
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from harness.servers import Server

PERIOD_S = 0.1
WINDOW_S = 1.0
_ATTEMPTS = re.compile(r'^weir_gate_attempts_total\{.*why="(\w+)"\} (\d+)', re.MULTILINE)
_SUPPRESSED = re.compile(r"^weir_gate_suppressed_total\{.*\} (\d+)", re.MULTILINE)


@dataclass(frozen=True)
class Sample:
    """All counts since the gate's start, at a moment."""

    at_s: float
    calls: int  # as first attempts
    extra: int  # attempts besides
    suppressed: int  # extra attempts that the budget did not allow

    def since(self, other: Sample) -> Sample:
        """What came between the other and this one."""
        return Sample(
            self.at_s - other.at_s,
            self.calls - other.calls,
            self.extra - other.extra,
            self.suppressed - other.suppressed,
        )


def read(server: Server, at_s: float = 0.0) -> Sample:
    """The counts now."""
    text = server.get("/metrics")
    by_reason: dict[str, int] = {}
    for why, count in _ATTEMPTS.findall(text):
        by_reason[why] = by_reason.get(why, 0) + int(count)
    if "first" not in by_reason:
        raise ValueError("/metrics has no weir_gate_attempts_total")
    calls = by_reason.pop("first")
    return Sample(at_s, calls, sum(by_reason.values()), sum(int(count) for count in _SUPPRESSED.findall(text)))


@contextmanager
def sampled(server: Server) -> Iterator[list[Sample]]:
    """Samples until the context is left; the first is from before it began, the last from after it ended."""
    samples = [read(server, 0.0)]
    start, done = time.monotonic(), threading.Event()

    def sample() -> None:
        while not done.wait(PERIOD_S):
            asked = time.monotonic()
            try:
                found = read(server)
            except (OSError, http.client.HTTPException):
                continue  # a gate in trouble; the samples around it tell
            at_s = (asked + time.monotonic()) / 2 - start
            samples.append(Sample(at_s, found.calls, found.extra, found.suppressed))

    thread = threading.Thread(target=sample)
    thread.start()
    try:
        yield samples
    finally:
        done.set()
        thread.join()
    samples.append(read(server, time.monotonic() - start))


def after(samples: list[Sample], at_s: float) -> Sample:
    """What was counted from that time on."""
    begin = next((sample for sample in samples if sample.at_s >= at_s), samples[0])
    return samples[-1].since(begin)


def windows(samples: list[Sample]) -> Iterator[tuple[Sample, Sample]]:
    """Each window of a second, as well as samples tell: what came within no more than that, and within no less.

    Only while calls come: a budget counts what came in the second before an extra attempt, and a window that ends
    later than the last of them has fewer calls.
    """
    first, calls = 0, samples[-1].calls
    for sample in samples:
        if sample.calls == calls:
            return
        while sample.at_s - samples[first + 1].at_s >= WINDOW_S:
            first += 1
        if sample.at_s - samples[first].at_s >= WINDOW_S:
            yield sample.since(samples[first + 1]), sample.since(samples[first])
