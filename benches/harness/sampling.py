"""Counters of `weir gate`, read periodically from its /metrics; of Envoy, from its admin listener."""

from __future__ import annotations

import http.client
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from harness.envoy import Envoy
from harness.servers import Server

PERIOD_S = 0.1
WINDOW_S = 1.0
_ATTEMPTS = re.compile(r'^weir_gate_attempts_total\{.*reason="(\w+)"\} (\d+)', re.MULTILINE)
_SKIPPED = re.compile(r"^weir_gate_attempts_skipped_total\{.*\} (\d+)", re.MULTILINE)


@dataclass(frozen=True)
class Sample:
    """Counters since the start of the gateway, at a time."""

    at_s: float
    calls: int  # as first attempts
    extra: int  # hedges and retries
    suppressed: int  # extra attempts that were skipped, for want of budget or a slot

    def since(self, other: Sample) -> Sample:
        """Return the difference to an earlier sample."""
        return Sample(
            self.at_s - other.at_s,
            self.calls - other.calls,
            self.extra - other.extra,
            self.suppressed - other.suppressed,
        )


def read(server: Server, at_s: float = 0.0) -> Sample:
    """Read the counters."""
    if isinstance(server, Envoy):
        return of_envoy(server.stats("^cluster.service.upstream_rq_"), at_s)
    text = server.get("/metrics")
    by_reason: dict[str, int] = {}
    for reason, count in _ATTEMPTS.findall(text):
        by_reason[reason] = by_reason.get(reason, 0) + int(count)
    if "first" not in by_reason:
        raise ValueError("/metrics has no weir_gate_attempts_total")
    calls = by_reason.pop("first")
    return Sample(at_s, calls, sum(by_reason.values()), sum(int(count) for count in _SKIPPED.findall(text)))


def of_envoy(stats: dict[str, int], at_s: float = 0.0) -> Sample:
    """Make a sample of Envoy's counters of its cluster; a hedge counts as a retry there."""
    of = {name.removeprefix("cluster.service.upstream_rq_"): count for name, count in stats.items()}
    skipped = of["retry_overflow"] + of["retry_limit_exceeded"]
    return Sample(at_s, of["total"] - of["retry"], of["retry"], skipped)


@contextmanager
def sampled(server: Server) -> Iterator[list[Sample]]:
    """Sample until the context is left; the first sample is from before it, the last from after it."""
    samples = [read(server, 0.0)]
    start, done = time.monotonic(), threading.Event()

    def sample() -> None:
        while not done.wait(PERIOD_S):
            requested = time.monotonic()
            try:
                found = read(server)
            except (OSError, http.client.HTTPException):
                continue  # an overloaded gateway; the samples around this one are enough
            at_s = (requested + time.monotonic()) / 2 - start
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
    """Return the difference from that time to the end."""
    begin = next((sample for sample in samples if sample.at_s >= at_s), samples[0])
    return samples[-1].since(begin)


def windows(samples: list[Sample]) -> Iterator[tuple[Sample, Sample]]:
    """Yield bounds of each window of a second: counts of a shorter interval, and of a longer one.

    Only while there are calls: a budget counts the second before an extra attempt, and a window that ends after the
    last call has fewer calls.
    """
    first, calls = 0, samples[-1].calls
    for sample in samples:
        if sample.calls == calls:
            return
        while sample.at_s - samples[first + 1].at_s >= WINDOW_S:
            first += 1
        if sample.at_s - samples[first].at_s >= WINDOW_S:
            yield sample.since(samples[first + 1]), sample.since(samples[first])
