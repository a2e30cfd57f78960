"""Results of a section as a page of Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from harness import (
    agents_page,
    client_page,
    closed,
    delivery_page,
    gate_page,
    grpc_page,
    harm_page,
    http2_page,
    limiters_page,
    llm_page,
    overload_page,
    results,
    scenario_page,
    scripts_page,
    send_page,
    serve_page,
    sharing_page,
    smart_page,
    streams_page,
    traces_page,
    truth,
    verdicts_page,
    watched_page,
    websocket_page,
)
from harness.goals import PERCENTILES, judge
from harness.results import MARK, Section
from harness.table import Row, number, table
from harness.verdict import Goal

#: First line of a page of quick runs.
QUICK = "Quick runs, too short to be quoted."

#: Warnings of sections where only some trials measure response times.
DOUBTS: dict[str, Callable[[Section], list[str]]] = {
    "serve": serve_page.doubts,
    "gate": gate_page.doubts,
    "smart": smart_page.doubts,
    "overload": overload_page.doubts,
}


def render(section: Section) -> str:
    """Render the page of a section: tables, warnings, goals, machine and command lines."""
    title, *body = WRITERS[section.name](section)
    parts = [title, *_head(section), *body, *_troubles(section)]
    parts += ["## Goals", _goals(judge(section)), "## Measured on", _machine(section)]
    parts += ["## Command lines", _commands(section)]
    return "\n\n".join(parts) + "\n"


def _head(section: Section) -> Iterator[str]:
    yield (
        f"Written by `python benches/run.py {section.name} --publish`; method and all pages:"
        " [benchmarks](../benchmarks.md)."
    )
    if section.plan["quick"]:
        yield f"**{QUICK}**"


def _machine(section: Section) -> str:
    rows = [[key, value] for key, value in section.machine.items()]
    rows.append(["versions", ", ".join(f"{name} {version}" for name, version in section.versions.items())])
    return table(["what", "value"], rows)


def _closed(section: Section) -> Iterator[str]:
    yield "# Closed loop: CPU cost of a request"
    seconds, pairs = section.plan["closed_s"], section.plan["pairs"]
    yield (
        f"{closed.CONNECTIONS} keep-alive connections, {seconds} s per run; rounds: {pairs},"
        f" for k6 and Locust {section.plan['slow_rounds']}."
    )
    header = ["generator", "requests/s", "CPU us/request", "user", "system", "x floor", "x wrk", "peak MB"]
    for target in section.cases():
        yield f"## Target: {target}"
        order = sorted(section.contenders(target), key=lambda name: _cost(section, target, name))
        yield table(header, [_closed_row(section, target, name) for name in order])
        yield from _pipelined_note(section, target)


def _closed_row(section: Section, target: str, name: str) -> Row:
    return [
        section.marked(target, name),
        number(section.median(target, name, results.rate), "{:,.0f}"),
        number(section.median(target, name, results.cpu), "{:.2f}"),
        number(section.median(target, name, lambda trial: trial.user_us_per_request), "{:.2f}"),
        number(section.median(target, name, lambda trial: trial.sys_us_per_request), "{:.2f}"),
        number(section.ratio(target, name, "floor", results.cpu), "{:.2f}"),
        number(section.ratio(target, name, "wrk", results.cpu), "{:.2f}"),
        number(section.median(target, name, results.memory), "{:.1f}"),
    ]


def _pipelined_note(section: Section, target: str) -> Iterator[str]:
    weir, floor = (closed.pipelined(name) for name in closed.PIPELINED)
    found = section.ratio(target, weir, floor, results.cpu)
    if found is not None:
        yield f"Pipelined {closed.DEPTH} deep, weir costs {found:.2f} x the floor that does the same."


def _open(section: Section) -> Iterator[str]:
    yield "# Open loop: evenness of arrivals"
    yield (
        "Arrival times are recorded by the lean server, which busy-waits. Deviation: distance of an arrival from the"
        " even schedule of the offered rate, over the middle 80% of the arrivals; only the start of that schedule is"
        " fitted."
    )
    header = [
        "generator", "arrivals/s", "off by p50 us", "p99 us", "p99.9 us", "max us", "gaps below 20 us",
        "CPU us/request", "own lateness p99 ms", "peak MB",
    ]  # fmt: skip
    for case in sorted(section.cases(), key=len):
        yield f"## {case}"
        yield table(header, [_open_row(section, case, name) for name in section.contenders(case)])


def _open_row(section: Section, case: str, name: str) -> Row:
    def off(which: str) -> str:
        return number(section.median(case, name, results.noted("deviation_us", which)), "{:,.1f}")

    return [
        section.marked(case, name),
        number(section.median(case, name, results.noted("rate_per_s")), "{:,.1f}"),
        *(off(which) for which in ("p50", "p99", "p999", "max")),
        number(section.median(case, name, results.noted("gaps_below_20us")), "{:.1%}"),
        number(section.median(case, name, results.cpu), "{:.1f}"),
        number(section.median(case, name, results.said("lateness_p99_ms")), "{:.3f}"),
        number(section.median(case, name, results.memory), "{:.1f}"),
    ]


def _truth(section: Section) -> Iterator[str]:
    yield "# Truth: accuracy of reported percentiles"
    yield (
        f"A service that responds at once but freezes for {truth.FROZEN_S:g} s in every {truth.PERIOD_S:g} s, at"
        f" {truth.FREEZE_RATE} requests/s for {section.plan['freeze_s']} s. Milliseconds, as reported."
    )
    yield _frozen_table(section)
    yield (
        f"A service with known delays, closed with {truth.DELAY_CONNECTIONS} requests at a time and open at"
        f" {truth.DELAY_RATE:,} requests/s, by HTTP/1.1 and by HTTP/2 with {truth.DELAY_STREAMS} streams per"
        " connection. Each cell is reported / true, in ms; the server measures the true value."
    )
    yield _delay_table(section)
    yield (
        f"Little's law at saturation, {truth.SATURATED_CONNECTIONS} connections: reported mean x reported rate /"
        " connections. 1 is consistent; below 1, time is missing from the report."
    )
    names = section.contenders(truth.SATURATED)
    cells = [number(section.median(truth.SATURATED, name, results.little), "{:.3f}") for name in names]
    shown = [section.marked(truth.SATURATED, name) for name in names]
    yield table(["generator", "reported / Little"], [list(row) for row in zip(shown, cells, strict=True)])


def _frozen_table(section: Section) -> str:
    shown = ("p50", "p90", "p99", "p999")
    rows = [["*truth*", "", "0", "500", "950", "995", f"{truth.FREEZE_RATE * section.plan['freeze_s']:,}"]]
    for case in (truth.FROZEN, truth.STOPPED):
        for name in section.contenders(case):
            cells = [number(section.median(case, name, results.percentile(p)), "{:.1f}") for p in shown]
            served = section.median(case, name, lambda trial: float(trial.requests))
            rows.append([section.marked(case, name), case, *cells, number(served, "{:,.0f}")])
    return table(["generator", "service", "p50", "p90", "p99", "p99.9", "requests"], rows)


def _delay_table(section: Section) -> str:
    rows = []
    for case in truth.DELAYS:
        for name in section.contenders(case):
            cells = []
            for which in PERCENTILES:
                said = section.median(case, name, results.percentile(which))
                true = section.median(case, name, results.noted(which))
                cells.append(f"{number(said, '{:.2f}')} / {number(true, '{:.2f}')}")
            rows.append([case, section.marked(case, name), *cells])
    return table(["delay", "generator", *PERCENTILES], rows)


def _memory(section: Section) -> Iterator[str]:
    yield "# Memory"
    yield "Closed loop at the lean server; peak resident memory of the generator. The minimum of this method is 2 MB."
    rows = []
    for case in section.cases():
        for name in section.contenders(case):
            rows.append([
                case,
                section.marked(case, name),
                number(section.median(case, name, results.memory), "{:.1f}"),
                number(section.median(case, name, lambda trial: float(trial.requests)), "{:,.0f}"),
                number(section.median(case, name, results.said("failed")), "{:.0f}"),
            ])  # fmt: skip
    yield table(["case", "generator", "peak MB", "requests", "failed"], rows)
    yield "A dash under failed: the tool does not report failures, or in a format that is not read here."


def _troubles(section: Section) -> Iterator[str]:
    """Yield missing programs, warnings and errors, with their reasons."""
    lines = [f"- {name}: not on this machine" for name in section.missing]
    doubts = DOUBTS.get(section.name, Section.doubts)(section)
    lines += [f"- {MARK} {doubt}" for doubt in doubts]
    lines += [f"- {error}" for error in section.errors()]
    if lines:
        yield f"Missing, or not trusted by weir itself ({MARK}):"
        yield "\n".join(lines)


def _goals(goals: Iterable[Goal]) -> str:
    rows = [[goal.promise, goal.measured, goal.verdict] for goal in goals]
    return table(["goal", "measured", "verdict"], rows)


def _commands(section: Section) -> str:
    return "\n".join(["```", *section.commands(), "```"])


def _cost(section: Section, target: str, name: str) -> float:
    return section.median(target, name, results.cpu) or 0.0


#: Writers of sections; the first part of each is the title of the page.
WRITERS: dict[str, Callable[[Section], Iterator[str]]] = {
    "closed": _closed,
    "open": _open,
    "truth": _truth,
    "memory": _memory,
    "scenario": scenario_page.write,
    "scripts": scripts_page.write,
    "http2": http2_page.write,
    "grpc": grpc_page.write,
    "streams": streams_page.write,
    "websocket": websocket_page.write,
    "watched": watched_page.write,
    "llm": llm_page.write,
    "traces": traces_page.write,
    "serve": serve_page.write,
    "gate": gate_page.write,
    "client": client_page.write,
    "smart": smart_page.write,
    "overload": overload_page.write,
    "harm": harm_page.write,
    "send": send_page.write,
    "delivery": delivery_page.write,
    "limiter": limiters_page.write,
    "shared": sharing_page.write,
    "verdicts": verdicts_page.write,
    "agents": agents_page.write,
}
