"""Page and goals of the section on limiters for Python."""

from __future__ import annotations

from collections.abc import Iterator

from harness import results
from harness.limiters import AT_ONCE, ENDS_AT, LEARNS, LIMIT, OURS, PEERS, WAYS_MS, case
from harness.results import Section
from harness.table import Row, number, table
from harness.verdict import Goal, at_most

BELOW_ONE = 0.999

METHOD = f"""\
One process with {AT_ONCE} tasks of asyncio and aiohttp waits for its limiter, sends a request and begins anew, until
enough requests are not rejected. The service is `weir serve ratelimit` with {LIMIT} requests per second for the key, as
a sliding log of whole milliseconds. Delays are uniform, and after ten rejections it rejects the key for good, as
the [reference API](../reference-workloads.md#rate-limited-api) does. Limiters have their defaults and the limit of
{LIMIT} per second; `{OURS}` has the longest way as `delay_bound`, and `{LEARNS}` is the default without one.

The oracle is calculated: a client without network delay that reads the service's count. Its share is its time from the
first request to the last one, divided by that of the limiter. A run whose key is blocked for good, or that is not done
after {ENDS_AT:g} times that time, ends; its share is the part of the requests that were not rejected. `limits` has no
wait, and is asked again at its own reset time. Figures are medians over the rounds, with minimum and maximum.
"""


def write(section: Section) -> Iterator[str]:
    """Yield the parts of the page."""
    yield "# Limiters: `weir.Limiter` beside pyrate-limiter, aiolimiter and limits"
    yield METHOD.strip()
    yield f"{section.plan['limiter_requests']} requests, {section.plan['limiter_rounds']} rounds."
    header = ["limiter", "version", "of the oracle", "min to max", "rejected", "most", "not rejected", "CPU us/request"]
    for way_ms in WAYS_MS:
        name = case(way_ms)
        yield f"## {name[0].upper()}{name[1:]}"
        order = sorted(section.contenders(name), key=lambda one: -(section.median(name, one, _share) or 0.0))
        yield table(header, [_row(section, name, one) for one in order])


_share = results.noted("share")
_rejected = results.noted("rejected")


def _row(section: Section, case: str, name: str) -> Row:
    trials = [trial for trial in section.trials(case, name) if not trial.error]
    shares = [trial.server["share"] for trial in trials]
    return [
        name,
        str(trials[0].server["version"]) if trials else "",
        number(section.median(case, name, _share), "{:.1%}"),
        f"{min(shares):.1%} to {max(shares):.1%}" if shares else "",
        number(section.median(case, name, _rejected), "{:,.0f}"),
        number(max((trial.server["rejected"] for trial in trials), default=None), "{:,.0f}"),
        number(section.median(case, name, results.noted("through")), "{:,.0f}"),
        number(section.median(case, name, results.noted("cpu_us")), "{:,.0f}"),
    ]


def judge(section: Section) -> Iterator[Goal]:
    """Yield the goals of the section."""
    for way_ms in WAYS_MS:
        name = case(way_ms)
        for ours in (OURS, LEARNS):
            trials = [trial for trial in section.trials(name, ours) if not trial.error]
            most = max((float(trial.server["rejected"]) for trial in trials), default=None)
            yield at_most(f"`{ours}`, {name}: fewer than 1 rejected", most, BELOW_ONE, "{:.0f}")
        found = section.median(name, OURS, _share)
        for peer in PEERS:
            theirs = section.median(name, peer, _share)
            ahead = None if not found or theirs is None else theirs / found
            yield at_most(f"`{OURS}`, {name}: nearer to the oracle than {peer}", ahead, 1.0, "{:.3f} x its share")
