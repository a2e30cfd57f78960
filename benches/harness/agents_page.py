"""Page and goals of the section on agents."""

from __future__ import annotations

from collections.abc import Iterator

from harness import agents, results
from harness.results import Section
from harness.table import Row, number, table
from harness.verdict import UNKNOWN, Goal, at_most, within

PERCENTILES = ("p50", "p90", "p99")
NAMES = (agents.ALONE, *(agents.label(count) for count in agents.COUNTS))


def write(section: Section) -> Iterator[str]:
    """Yield the parts of the page."""
    yield "# Agents: several processes that drive one load"
    yield (
        f"`--on local` on the generator's one core, {agents.CONNECTIONS} connections in total,"
        f" {section.plan['delay_s']} s per run. CPU time is of the coordinator and all agents, with their start;"
        " `weir` has no agents."
    )
    header = ["", "requests/s", "CPU us/request", "x weir", "x 1 agent", "peak MB of a process"]
    yield table(header, [_cost(section, name) for name in NAMES])
    yield (
        f"A service with known delays at {agents.RATE:,} requests/s: merged percentiles / true percentiles, in ms."
        " Skew: time between the first and the last start of an agent, plus twice the error of their clocks. Equality"
        " of merged histograms and those of a single recorder, in each count, is a property test"
        " (`results_of_agents_add_up_to_those_of_a_single_recorder`)."
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
    """Yield the goals of the section."""
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
    promise = f"{name}: merged {which} within 1% + 100 us of the truth"
    said = section.median(agents.TRUTH, name, results.percentile(which))
    true = section.median(agents.TRUTH, name, results.noted(which))
    if said is None or true is None:
        return Goal(promise, "", UNKNOWN)
    return within(promise, said, true, 0.01 * true + 0.1, "{:.2f} ms")
