"""Goals of weir's clients for Python."""

from __future__ import annotations

from collections.abc import Iterator

from harness import clients, results
from harness.results import Section
from harness.verdict import Goal, at_most

AWAITED_US = 30.0

cpu = results.noted("cpu_us_per_call")


def judge(section: Section) -> Iterator[Goal]:
    """Yield the goals of the section."""
    for name in (clients.ASYNC, clients.ASYNC + clients.UVLOOP):
        found = section.median(clients.AWAITED, name, cpu)
        yield at_most(
            f"`{name}`, {clients.AWAITED}: at most {AWAITED_US:g} us CPU per call", found, AWAITED_US, "{:.1f} us"
        )
    for peer in clients.ALONE_PEERS:
        found = section.ratio(clients.ALONE, clients.SYNC, peer, cpu)
        promise = f"`{clients.SYNC}`, {clients.ALONE}: less CPU per call than {peer}"
        yield at_most(promise, found, 1.0, "{:.2f} x")
