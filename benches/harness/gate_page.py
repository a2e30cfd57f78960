"""The part of the page that is about `weir gate` in between."""

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
one at a time, with one worker each, connections that are kept on both sides, and no access log. CPU time is the
gateway's: what the scheduler counted, in nanoseconds, for all threads of all its processes. `{POLICED}` is
`weir gate {" ".join(POLICIES)}`. Resident memory is of all processes together, after the run.
"""


def write(section: Section) -> Iterator[str]:
    """All tables of the section."""
    yield "# Gate: what it costs to be in between"
    yield METHOD.strip()
    yield "## Maximum throughput"
    yield (
        f"`wrk` with {gated.CONNECTIONS} connections, {section.plan['closed_s']} s a run, {section.plan['pairs']}"
        " rounds. Where the upstream's core is the one that is full, the rate is not the gateway's, and what tells"
        " gateways apart is their CPU time. Attempts are those that the upstream counted."
    )
    header = ["gateway", "requests/s", "core", "CPU us/request", f"x {NGINX}", f"x `{PLAIN}`", "attempts/request", "MB"]
    yield table(header, [_closed(section, name) for name in (gated.DIRECT, *GATEWAYS) if _there(section, name)])
    yield "## At an even rate"
    yield (
        f"`weir load`, {section.plan['gate_s']} s a run. Response times count from when a request was due. Added:"
        " against the same percentile without a gateway in the same round."
    )
    header = [
        "load", "gateway", *(f"{which} us" for which in SHOWN), *(f"added at {which} us" for which in SHOWN),
        *(f"{which} x {peer}" for which in SHOWN for peer in (NGINX, HAPROXY)), "CPU us/request", "MB",
    ]  # fmt: skip
    yield table(header, _even(section))


def doubts(section: Section) -> list[str]:
    """Why the generator does not trust its own run: the open loop only, as wrk trusts itself always."""
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
