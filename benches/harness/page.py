"""The results as a page of Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from harness import (
    agents_page,
    client_page,
    closed,
    gate_page,
    overload_page,
    results,
    send_page,
    serve_page,
    sharing_page,
    smart_page,
    truth,
    verdicts_page,
)
from harness.goals import PERCENTILES, judge
from harness.results import Section
from harness.table import Row, number, table
from harness.verdict import Goal

METHOD = """\
Server and generator have a core each. `lean` is the server in `benches/lean`, which answers a constant and counts;
nginx has one worker and returns a constant of the same 38 bytes. Requests are counted by the server, never by the
generator. CPU per request is user and system time of the generator's process, start-up included, for each of those
requests. Contenders run interleaved: every one once a round, in an order drawn anew for each round. Tables show
medians over the rounds; a ratio is the median of the ratios within each round, since the machine drifts from minute
to minute, and ratios are what to quote. `floor` is the loop in `benches/floor.rs`: it writes a fixed request and
counts bytes, and measures nothing.
"""

#: Where only some trials are about response times.
DOUBTS: dict[str, Callable[[Section], list[str]]] = {
    "serve": serve_page.doubts,
    "gate": gate_page.doubts,
    "smart": smart_page.doubts,
    "overload": overload_page.doubts,
}


def render(sections: dict[str, Section]) -> str:
    """The whole page."""
    parts = ["# Benchmarks", *_head(sections), "## Method", METHOD.strip()]
    writers: dict[str, Callable[[Section], Iterator[str]]] = {
        "closed": _closed,
        "open": _open,
        "truth": _truth,
        "memory": _memory,
        "serve": serve_page.write,
        "gate": gate_page.write,
        "client": client_page.write,
        "smart": smart_page.write,
        "overload": overload_page.write,
        "send": send_page.write,
        "shared": sharing_page.write,
        "verdicts": verdicts_page.write,
        "agents": agents_page.write,
    }
    for name, writer in writers.items():
        if name in sections:
            parts += [*writer(sections[name]), *_troubles(sections[name])]
    parts += ["## Goals", _goals(judge(sections)), "## Command lines", _commands(sections)]
    return "\n\n".join(parts) + "\n"


def _head(sections: dict[str, Section]) -> Iterator[str]:
    yield (
        "Written by `python benches/run.py all --publish`. Measured on the loopback of one machine; other machines"
        " will differ, most of all in what a wake-up costs."
    )
    rows = []
    for name, section in sections.items():
        machine = section.machine
        rows += [[f"{name}: {key}", value] for key, value in _differing(sections, name)]
        if section is next(iter(sections.values())):
            rows = [[key, value] for key, value in machine.items()] + rows
            rows.append(["versions", ", ".join(f"{k} {v}" for k, v in section.versions.items())])
    yield table(["", "measured on"], rows)
    short = [name for name, section in sections.items() if section.plan["quick"]]
    if short:
        yield f"**Quick runs, too short to be quoted: {', '.join(short)}.**"


def _differing(sections: dict[str, Section], name: str) -> list[tuple[str, str]]:
    """What is not the same for this section as for the first."""
    first = next(iter(sections.values())).machine
    return [(key, value) for key, value in sections[name].machine.items() if first.get(key) != value]


def _closed(section: Section) -> Iterator[str]:
    yield "## Closed loop: the cost of a request"
    seconds, pairs = section.plan["closed_s"], section.plan["pairs"]
    yield (
        f"{closed.CONNECTIONS} keep-alive connections, {seconds} s a run; rounds: {pairs},"
        f" for k6 and Locust {section.plan['slow_rounds']}."
    )
    header = ["generator", "requests/s", "CPU us/request", "user", "system", "x floor", "x wrk", "peak MB"]
    for target in section.cases():
        yield f"### Target: {target}"
        order = sorted(section.contenders(target), key=lambda name: _cost(section, target, name))
        yield table(header, [_closed_row(section, target, name) for name in order])
        yield from _pipelined_note(section, target)


def _closed_row(section: Section, target: str, name: str) -> Row:
    return [
        name,
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
    yield "## Open loop: how evenly requests are sent"
    yield (
        "Arrival times are noted by the lean server, which spins. Deviation: how far an arrival is from the even"
        " schedule of the asked rate, over the middle 80 % of the arrivals; only the start of that schedule is fitted."
    )
    header = [
        "generator", "arrivals/s", "off by p50 us", "p99 us", "p99.9 us", "max us", "gaps below 20 us",
        "CPU us/request", "own lateness p99 ms", "peak MB",
    ]  # fmt: skip
    for case in sorted(section.cases(), key=len):
        yield f"### {case}"
        yield table(header, [_open_row(section, case, name) for name in section.contenders(case)])


def _open_row(section: Section, case: str, name: str) -> Row:
    def off(which: str) -> str:
        return number(section.median(case, name, results.noted("deviation_us", which)), "{:,.1f}")

    return [
        name,
        number(section.median(case, name, results.noted("rate_per_s")), "{:,.1f}"),
        *(off(which) for which in ("p50", "p99", "p999", "max")),
        number(section.median(case, name, results.noted("gaps_below_20us")), "{:.1%}"),
        number(section.median(case, name, results.cpu), "{:.1f}"),
        number(section.median(case, name, results.said("lateness_p99_ms")), "{:.3f}"),
        number(section.median(case, name, results.memory), "{:.1f}"),
    ]


def _truth(section: Section) -> Iterator[str]:
    yield "## Truth: are the reported numbers the true ones?"
    yield (
        f"A service that answers at once but stands still for {truth.FROZEN_S:g} s in every {truth.PERIOD_S:g} s, at"
        f" {truth.FREEZE_RATE} requests/s for {section.plan['freeze_s']} s. Milliseconds, as reported."
    )
    yield _frozen_table(section)
    yield (
        f"A service with known delays, closed with {truth.DELAY_CONNECTIONS} connections and open at"
        f" {truth.DELAY_RATE:,} requests/s. Each cell is reported / true, in ms; the truth is measured by the server."
    )
    yield _delay_table(section)
    yield (
        f"Little's law at saturation, {truth.SATURATED_CONNECTIONS} connections: reported mean x reported rate /"
        " connections. 1 is consistent; below 1, time is missing from the report."
    )
    names = section.contenders(truth.SATURATED)
    cells = [number(section.median(truth.SATURATED, name, results.little), "{:.3f}") for name in names]
    yield table(["generator", "reported / Little"], [list(row) for row in zip(names, cells, strict=True)])


def _frozen_table(section: Section) -> str:
    shown = ("p50", "p90", "p99", "p999")
    rows = [["*truth*", "", "0", "500", "950", "995", f"{truth.FREEZE_RATE * section.plan['freeze_s']:,}"]]
    for case in (truth.FROZEN, truth.STOPPED):
        for name in section.contenders(case):
            cells = [number(section.median(case, name, results.percentile(p)), "{:.1f}") for p in shown]
            served = section.median(case, name, lambda trial: float(trial.requests))
            rows.append([name, case, *cells, number(served, "{:,.0f}")])
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
            rows.append([case, name, *cells])
    return table(["delay", "generator", *PERCENTILES], rows)


def _memory(section: Section) -> Iterator[str]:
    yield "## Memory"
    yield "Closed loop on the lean server; peak resident memory of the generator. 2 MB is the least this shows."
    rows = []
    for case in section.cases():
        for name in section.contenders(case):
            rows.append([
                case,
                name,
                number(section.median(case, name, results.memory), "{:.1f}"),
                number(section.median(case, name, lambda trial: float(trial.requests)), "{:,.0f}"),
                number(section.median(case, name, results.said("failed")), "{:.0f}"),
            ])  # fmt: skip
    yield table(["case", "generator", "peak MB", "requests", "failed"], rows)
    yield "A dash under failed: the tool does not say, or not in a form that is read here."


def _troubles(section: Section) -> Iterator[str]:
    """What is not in the tables, and why."""
    lines = [f"- {name}: not on this machine" for name in section.missing]
    doubts = DOUBTS.get(section.name, Section.doubts)(section)
    lines += [f"- in the tables, though weir itself says not to trust it: {doubt}" for doubt in doubts]
    lines += [f"- {error}" for error in section.errors()]
    if lines:
        yield "Missing or in doubt:"
        yield "\n".join(lines)


def _goals(goals: list[Goal]) -> str:
    rows = [[goal.promise, goal.measured, goal.verdict] for goal in goals]
    return table(["goal", "measured", ""], rows)


def _commands(sections: dict[str, Section]) -> str:
    lines = sorted({command for section in sections.values() for command in section.commands()})
    return "\n".join(["```", *lines, "```"])


def _cost(section: Section, target: str, name: str) -> float:
    return section.median(target, name, results.cpu) or 0.0
