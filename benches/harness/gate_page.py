"""Page of the section on `weir gate` as a proxy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from harness import gated, results
from harness.gate_goals import SHOWN, added_ms, cpu
from harness.proxies import GATEWAYS, HAPROXY, NGINX, PLAIN, POLICED, POLICIES
from harness.results import Section
from harness.servers import PAGE_BYTES
from harness.table import Row, number, table

METHOD = f"""\
One upstream, nginx with a file of {PAGE_BYTES:,} bytes, shares a core with the generator; gateways have the other core,
one at a time, with one worker each, keep-alive connections on both sides, and no access log. CPU time is of all threads
of all processes of the gateway, as the scheduler counts it in nanoseconds. `{POLICED}` is
`weir gate {" ".join(POLICIES)}`. Resident memory is of all processes of the gateway after the run.
"""


def write(section: Section) -> Iterator[str]:
    """Yield the parts of the page."""
    yield "# Gate: the cost of a proxy"
    yield METHOD.strip()
    yield "## Maximum throughput"
    yield (
        f"`wrk` with {gated.CONNECTIONS} connections, {section.plan['closed_s']} s per run, {section.plan['pairs']}"
        " rounds. Where the upstream's core is the limit, compare gateways by their CPU time, not by the rate. Attempts"
        " are counted by the upstream."
    )
    header = ["gateway", "requests/s", "core", "CPU us/request", f"x {NGINX}", f"x `{PLAIN}`", "attempts/request", "MB"]
    yield table(header, [_closed(section, name) for name in (gated.DIRECT, *GATEWAYS) if _there(section, name)])
    yield "## At an even rate"
    yield (
        f"`weir load`, {section.plan['gate_s']} s per run. Response times count from the intended start of a request."
        " Added: difference to the same percentile without a gateway in the same round."
    )
    header = [
        "load", "gateway", *(f"{which} us" for which in SHOWN), *(f"added at {which} us" for which in SHOWN),
        *(f"{which} x {peer}" for which in SHOWN for peer in (NGINX, HAPROXY)), "CPU us/request", "MB",
    ]  # fmt: skip
    yield table(header, _even(section))


def doubts(section: Section) -> list[str]:
    """Return the generator's warnings on its own runs, of the open loops; wrk has none."""
    cases = {gated.case(rate) for rate in gated.RATES}
    return replace(section, every=[trial for trial in section.every if trial.case in cases]).doubts()


def _there(section: Section, name: str) -> bool:
    return bool(section.trials(gated.CLOSED, name))


def _closed(section: Section, name: str) -> Row:
    case, base = gated.CLOSED, name == gated.DIRECT
    return [
        name,
        number(section.median(case, name, results.noted("rate_per_s")), "{:,.0f}"),
        number(section.median(case, name, results.noted("busy")), "{:.0%}"),
        number(section.median(case, name, cpu), "{:.2f}"),
        "" if base else number(section.ratio(case, name, NGINX, cpu), "{:.3f}"),
        "" if base else number(section.ratio(case, name, PLAIN, cpu), "{:.3f}"),
        number(section.median(case, name, results.noted("attempts_per_request")), "{:.3f}"),
        number(section.median(case, name, results.noted("rss_mb")), "{:.1f}"),
    ]


def _even(section: Section) -> Iterator[Row]:
    for rate in gated.RATES:
        case = gated.case(rate)
        for name in (gated.DIRECT, *GATEWAYS):
            if not section.trials(case, name):
                continue
            times = [section.median(case, name, results.percentile(which)) for which in SHOWN]
            added = [added_ms(section, case, name, which) for which in SHOWN]
            ratios = [
                section.ratio(case, name, peer, results.percentile(which))
                for which in SHOWN
                for peer in (NGINX, HAPROXY)
            ]
            base = name == gated.DIRECT
            yield [
                case,
                name,
                *(_us(value, "{:,.0f}") for value in times),
                *("" if base else _us(value, "{:+,.0f}") for value in added),
                *("" if base else number(ratio, "{:.2f}") for ratio in ratios),
                number(section.median(case, name, cpu), "{:.1f}"),
                number(section.median(case, name, results.noted("rss_mb")), "{:.1f}"),
            ]


def _us(ms: float | None, form: str) -> str:
    return number(None if ms is None else 1000 * ms, form)
