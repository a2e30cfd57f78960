"""Goals of the cost of `weir gate` as a proxy, plain and with all policies."""

from __future__ import annotations

from collections.abc import Iterator

from harness import gated, results
from harness.causes import causes
from harness.proxies import ENVOY, ENVOY_POLICED, HAPROXY, NGINX, PLAIN, POLICED
from harness.results import Section, Value
from harness.verdict import UNKNOWN, Goal, at_most

SHOWN = ("p50", "p99")
#: Maximum CPU time per request: of which gateway, times that of which peer, and the row of its cause.
COSTS = (
    (PLAIN, NGINX, 1.10, "CPU time"),
    (POLICED, NGINX, 1.20, "CPU time, all policies"),
    (PLAIN, ENVOY, 0.30, "CPU time beside Envoy"),
    (POLICED, ENVOY_POLICED, 0.30, "CPU time beside Envoy"),
)
#: Maximum time at the lower rate beyond what nginx adds.
EVEN_RATE, BEYOND_US = gated.RATES[0], 10.0

cpu = results.noted("cpu_us_per_request")


def judge(section: Section) -> Iterator[Goal]:
    """Yield the goals of the section, with the causes of those that are missed."""
    known = causes()
    for name, peer, limit, cause in COSTS:
        yield _cost(section, name, peer, limit).because(known.get(cause, ""))
    for which in SHOWN:
        yield _beyond(section, which).because(known.get(f"time at {which}", ""))
    found = section.ratio(gated.CLOSED, PLAIN, NGINX, cpu)
    goal = at_most(f"`{PLAIN}`, {gated.CLOSED}: at most the CPU per request of nginx", found, 1.0, "{:.3f} x")
    yield goal.because(known.get("CPU time", ""))
    found = section.ratio(gated.CLOSED, POLICED, PLAIN, cpu)
    goal = at_most(f"all policies on, {gated.CLOSED}: at most 1.10 x the CPU per request", found, 1.10, "{:.3f} x")
    yield goal.because(known.get("CPU time, all policies", ""))
    for rate in gated.RATES:
        case = gated.case(rate)
        for which in SHOWN:
            for peer in (NGINX, HAPROXY):
                yield _added(section, case, which, peer).because(known.get(f"time at {which}", ""))


def added_ms(section: Section, case: str, name: str, which: str) -> float | None:
    """Compute the median over the rounds of the response time added by a gateway."""
    return section.difference(case, name, gated.DIRECT, results.percentile(which))


def _cost(section: Section, name: str, peer: str, limit: float) -> Goal:
    """Compare CPU times, with the parts of both where they are known."""
    found = section.ratio(gated.CLOSED, name, peer, cpu)
    promise = f"`{name}`, {gated.CLOSED}: at most {limit:.2f} x the CPU per request of {peer}"
    return at_most(promise, found, limit, f"{{:.3f}} x; {_parts(section, name)}, {peer}: {_parts(section, peer)}")


def _parts(section: Section, name: str) -> str:
    user, system = (_closed(section, name, results.noted(part)) for part in ("user_us", "system_us"))
    return f"{user} us user and {system} us system time"


def _closed(section: Section, name: str, value: Value) -> str:
    found = section.median(gated.CLOSED, name, value)
    return "?" if found is None else f"{found:.1f}"


def _beyond(section: Section, which: str) -> Goal:
    """Compare added times: the baseline without a gateway is the same, so their difference is that of the times."""
    case = gated.case(EVEN_RATE)
    promise = f"`{PLAIN}`, {case}: adds at most {BEYOND_US:g} us more than nginx at {which}"
    found = section.difference(case, PLAIN, NGINX, results.percentile(which))
    if found is None:
        return Goal(promise, "", UNKNOWN)
    us = 1000 * found
    verdict = "reached" if us <= BEYOND_US else f"missed by {us - BEYOND_US:.0f} us"
    return Goal(promise, f"{us:+,.0f} us", verdict)


def _added(section: Section, case: str, which: str, peer: str) -> Goal:
    """Compare response times: all have the same baseline without a gateway, so the order of added times is theirs."""
    found = section.ratio(case, PLAIN, peer, results.percentile(which))
    mine, theirs = (added_ms(section, case, name, which) for name in (PLAIN, peer))
    form = "{:.2f} x its response time"
    if mine is not None and theirs is not None:
        form += f"; added {1000 * mine:+,.0f} us, by {peer} {1000 * theirs:+,.0f} us"
    return at_most(f"`{PLAIN}`, {case}: adds no more to the response time than {peer} at {which}", found, 1.0, form)
