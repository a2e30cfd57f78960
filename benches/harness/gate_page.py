"""Page of the section on `weir gate` as a proxy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from harness import gated, results
from harness.gate_goals import SHOWN, added_ms, cpu
from harness.proxies import (
    CADDY_POLICED,
    ENVOY,
    ENVOY_POLICED,
    HAPROXY,
    HAPROXY_POLICED,
    NGINX,
    NGINX_POLICED,
    PLAIN,
    POLICED,
    POLICIES,
)
from harness.results import Section
from harness.servers import PAGE_BYTES
from harness.table import Row, number, table

METHOD = f"""\
One upstream, nginx with a file of {PAGE_BYTES:,} bytes, shares a core with the generator; gateways have the other core,
one at a time, with one worker each, keep-alive connections on both sides, and no access log. CPU time is of all threads
of all processes of the gateway, as the scheduler counts it in nanoseconds, per success; its user part is by the
system's clock. Rejected: 429 and 503. Resident memory is of all processes of the gateway after the run.

Ratios, added times and goals are medians of pairs, each of two gateways in one round. They are no quotients or
differences of the medians beside them, which may be of different rounds.

Each gateway is measured as a plain proxy, and with the policies that it has, as its documentation configures them
([why so](../design/gate-peers.md)): `{POLICED}` is `weir gate {" ".join(POLICIES)}`, beside the adaptive limit and
outlier detection, which are on by default; `{ENVOY_POLICED}` has the same, with adaptive concurrency and a retry budget
of 20%; `{HAPROXY_POLICED}` and `{CADDY_POLICED}` have retries, timeouts and health checks, `{NGINX_POLICED}` retries
and timeouts.
"""


def write(section: Section) -> Iterator[str]:
    """Yield the parts of the page."""
    yield "# Gate: the cost of a proxy"
    yield METHOD.strip()
    yield "## Maximum throughput"
    yield (
        f"`wrk` with {gated.CONNECTIONS} connections, {section.plan['closed_s']} s per run,"
        f" {section.plan['gate_rounds']} rounds. Where the upstream's core is the limit, compare gateways"
        " by their CPU time, not by the rate. Attempts are counted by the upstream."
    )
    header = [
        "gateway", "requests/s", "core", "CPU us/request", "user", "system", f"x {NGINX}", f"x {ENVOY}", f"x `{PLAIN}`",
        "attempts/request", "rejected", "MB",
    ]  # fmt: skip
    names = (gated.DIRECT, *gated.PROXIES, *gated.WITH_POLICIES)
    yield table(header, [_closed(section, name) for name in names if _there(section, name)])
    yield "## At an even rate"
    yield (
        f"`weir load`, {section.plan['gate_s']} s per run, {section.plan['pairs']} rounds. Response times count from"
        " the intended start of a request. Added: difference to the same percentile without a gateway in the same"
        " round."
    )
    header = [
        "load", "gateway", *(f"{which} us" for which in SHOWN), *(f"added at {which} us" for which in SHOWN),
        *(f"{which} x {peer}" for which in SHOWN for peer in BESIDE), "CPU us/request", "rejected", "MB",
    ]  # fmt: skip
    yield table(header, _even(section))


def doubts(section: Section) -> list[str]:
    """Return the generator's warnings on its own runs, of the open loops; wrk has none."""
    cases = {gated.case(rate) for rate in gated.RATES}
    return replace(section, every=[trial for trial in section.every if trial.case in cases]).doubts()


#: Peers that the response times of all gateways are compared with.
BESIDE = (NGINX, HAPROXY, ENVOY)


def _there(section: Section, name: str) -> bool:
    return bool(section.trials(gated.CLOSED, name))


def _closed(section: Section, name: str) -> Row:
    case, base = gated.CLOSED, name == gated.DIRECT
    return [
        name,
        number(section.median(case, name, results.noted("rate_per_s")), "{:,.0f}"),
        number(section.median(case, name, results.noted("busy")), "{:.0%}"),
        number(section.median(case, name, cpu), "{:.2f}"),
        *(number(section.median(case, name, results.noted(part)), "{:.2f}") for part in ("user_us", "system_us")),
        *("" if base else number(section.ratio(case, name, peer, cpu), "{:.3f}") for peer in (NGINX, ENVOY, PLAIN)),
        number(section.median(case, name, results.noted("attempts_per_request")), "{:.3f}"),
        _rejected(section, case, name),
        number(section.median(case, name, results.noted("rss_mb")), "{:.1f}"),
    ]


def _even(section: Section) -> Iterator[Row]:
    for rate in gated.RATES:
        case = gated.case(rate)
        for name in gated.EVEN:
            if not section.trials(case, name):
                continue
            times = [section.median(case, name, results.percentile(which)) for which in SHOWN]
            added = [added_ms(section, case, name, which) for which in SHOWN]
            ratios = [section.ratio(case, name, peer, results.percentile(which)) for which in SHOWN for peer in BESIDE]
            base = name == gated.DIRECT
            yield [
                case,
                name,
                *(_us(value, "{:,.0f}") for value in times),
                *("" if base else _us(value, "{:+,.0f}") for value in added),
                *("" if base else number(ratio, "{:.2f}" if (ratio or 1) >= 0.1 else "{:.2g}") for ratio in ratios),
                number(section.median(case, name, cpu), "{:.1f}"),
                _rejected(section, case, name),
                number(section.median(case, name, results.noted("rss_mb")), "{:.1f}"),
            ]


def _rejected(section: Section, case: str, name: str) -> str:
    """Format the fraction of all responses of all rounds: a limit that falls for a moment falls in few of them."""
    trials = section.trials(case, name)
    rejected = sum(trial.server["rejected"] for trial in trials)
    return f"{rejected / max(1, rejected + sum(trial.requests for trial in trials)):.2%}"


def _us(ms: float | None, form: str) -> str:
    return number(None if ms is None else 1000 * ms, form)
