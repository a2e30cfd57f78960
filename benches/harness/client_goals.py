"""Goals of weir's clients for Python."""

from __future__ import annotations

from collections.abc import Iterator

from harness import clients, results
from harness.results import Section
from harness.verdict import Goal, at_most

AWAITED_RATIO = 0.25
"""Of aiohttp's CPU per call: 30 us where that takes 120. Times of one machine do not compare with those of another."""

cpu = results.noted("cpu_us_per_call")


def judge(section: Section) -> Iterator[Goal]:
    """Yield the goals of the section."""
    for name in (clients.ASYNC, clients.ASYNC + clients.UVLOOP):
        found = section.ratio(clients.AWAITED, name, "aiohttp", cpu)
        promise = f"`{name}`, {clients.AWAITED}: at most {AWAITED_RATIO:g} x aiohttp's CPU per call"
        yield at_most(promise, found, AWAITED_RATIO, "{:.2f} x")
    for peer in clients.ALONE_PEERS:
        found = section.ratio(clients.ALONE, clients.SYNC, peer, cpu)
        promise = f"`{clients.SYNC}`, {clients.ALONE}: less CPU per call than {peer}"
        yield at_most(promise, found, 1.0, "{:.2f} x")
    for case in (clients.FEW, clients.AWAITED, clients.MANY):
        found = section.ratio(case, clients.TRANSPORT, "httpx2", cpu)
        yield at_most(f"{clients.TRANSPORT}, {case}: at most half of httpx2's CPU per call", found, 0.5, "{:.2f} x")
    found = section.ratio(clients.AWAITED, clients.TRANSPORT, "aiohttp", cpu)
    yield at_most(f"{clients.TRANSPORT}, {clients.AWAITED}: at most aiohttp's CPU per call", found, 1.0, "{:.2f} x")
    found = section.ratio(clients.STREAMED, clients.STREAMS[0], "stream pycurl", cpu)
    yield at_most(f"1 MiB by {clients.TRANSPORT}: at most 1.1 x pycurl's CPU", found, 1.1, "{:.2f} x")
