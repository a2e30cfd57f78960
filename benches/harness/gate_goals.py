"""Goals of the cost of `weir gate` as a plain proxy."""

from __future__ import annotations

from collections.abc import Iterator

from harness import gated, results
from harness.proxies import HAPROXY, NGINX, PLAIN, POLICED
from harness.results import Section
from harness.verdict import Goal, at_most

SHOWN = ("p50", "p99")

cpu = results.noted("cpu_us_per_request")


def judge(section: Section) -> Iterator[Goal]:
    """Yield the goals of the section."""
    found = section.ratio(gated.CLOSED, PLAIN, NGINX, cpu)
    yield at_most(f"`{PLAIN}`, {gated.CLOSED}: at most the CPU per request of nginx", found, 1.0, "{:.3f} x")
    found = section.ratio(gated.CLOSED, POLICED, PLAIN, cpu)
    yield at_most(f"all policies on, {gated.CLOSED}: at most 1.10 x the CPU per request", found, 1.10, "{:.3f} x")
    for rate in gated.RATES:
        case = gated.case(rate)
        for which in SHOWN:
            for peer in (NGINX, HAPROXY):
                yield _added(section, case, which, peer)


def added_ms(section: Section, case: str, name: str, which: str) -> float | None:
    """Compute the median over the rounds of the response time added by a gateway."""
    return section.difference(case, name, gated.DIRECT, results.percentile(which))


def _added(section: Section, case: str, which: str, peer: str) -> Goal:
    """Compare response times: all have the same baseline without a gateway, so the order of added times is theirs."""
    found = section.ratio(case, PLAIN, peer, results.percentile(which))
    mine, theirs = (added_ms(section, case, name, which) for name in (PLAIN, peer))
    form = "{:.2f} x its response time"
    if mine is not None and theirs is not None:
        form += f"; added {1000 * mine:+,.0f} us, by {peer} {1000 * theirs:+,.0f} us"
    return at_most(f"`{PLAIN}`, {case}: adds no more to the response time than {peer} at {which}", found, 1.0, form)
