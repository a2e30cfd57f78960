"""The section on agents: tables and goals."""

from __future__ import annotations

from collections.abc import Iterator

from harness import agents, results
from harness.results import Section
from harness.table import Row, number, table
from harness.verdict import UNKNOWN, Goal, at_most, within

PERCENTILES = ("p50", "p90", "p99")
NAMES = (agents.ALONE, *(agents.label(count) for count in agents.COUNTS))


def write(section: Section) -> Iterator[str]:
    """All that was measured."""
    yield "# Agents: several processes that drive one load"
    yield (
        f"`--on local` on the generator's one core, {agents.CONNECTIONS} connections in all,"
        f" {section.plan['delay_s']} s a run. CPU is that of the driver and all its agents, their start included;"
        " `weir` has no agents."
    )
    header = ["", "requests/s", "CPU us/request", "x weir", "x 1 agent", "peak MB of a process"]
    yield table(header, [_cost(section, name) for name in NAMES])
    yield (
        f"A service with known delays at {agents.RATE:,} requests/s: merged percentiles / the truth, in ms. Skew: how"
        " far apart agents began, with twice the error of their clocks. That merged histograms are those of one agent"
        " that saw everything, to the last count, is a test (`agents_together_saw_what_one_would_have_seen`)."
    )
    yield table(["", *PERCENTILES, "skew ms"], [_truth(section, name) for name in NAMES])


def _cost(section: Section, name: str) -> Row:
    return [
        name,
        number(section.median(agents.COST, name, results.rate), "{:,.0f}"),
        number(section.median(agents.COST, name, results.cpu), "{:.2f}"),
        number(section.ratio(agents.COST, name, agents.ALONE, results.cpu), "{:.3f}"),
        number(section.ratio(agents.COST, name, agents.label(1), results.cpu), "{:.3f}"),
        number(section.median(agents.COST, name, results.memory), "{:.1f}"),
    ]


def _truth(section: Section, name: str) -> Row:
    cells = []
    for which in PERCENTILES:
        said = section.median(agents.TRUTH, name, results.percentile(which))
        true = section.median(agents.TRUTH, name, results.noted(which))
        cells.append(f"{number(said, '{:.2f}')} / {number(true, '{:.2f}')}")
    return [name, *cells, number(section.median(agents.TRUTH, name, results.said("skew_ms")), "{:.2f}")]


def judge(section: Section) -> Iterator[Goal]:
    """What was promised of agents."""
    for count in agents.COUNTS[1:]:
        found = section.ratio(agents.COST, agents.label(count), agents.label(1), results.cpu)
        yield at_most(f"{count} agents: CPU per request at most 1.05 x that of 1", found, 1.05, "{:.3f} x")
    for count in agents.COUNTS:
        for which in PERCENTILES:
            yield _percentile(section, agents.label(count), which)
    for count in agents.COUNTS[1:]:
        found = section.median(agents.TRUTH, agents.label(count), results.said("skew_ms"))
        yield at_most(f"{count} agents on one host begin within 1 ms", found, 1.0, "{:.2f} ms")


def _percentile(section: Section, name: str, which: str) -> Goal:
    promise = f"{name}: merged {which} within 1 % + 100 us of the truth"
    said = section.median(agents.TRUTH, name, results.percentile(which))
    true = section.median(agents.TRUTH, name, results.noted(which))
    if said is None or true is None:
        return Goal(promise, "", UNKNOWN)
    return within(promise, said, true, 0.01 * true + 0.1, "{:.2f} ms")
