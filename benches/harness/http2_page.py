"""Page and goals of the section on HTTP/2."""

from __future__ import annotations

from collections.abc import Iterator

from harness import http2, results
from harness.cost_columns import costs, cpu
from harness.results import Section
from harness.table import Row, number, table
from harness.verdict import Goal, at_most

#: CPU time per request as a fraction of h2load's: with several streams on a connection, and with one.
MAX_MULTIPLEXED, MAX_SINGLE = 0.75, 1.0
MAX_MEMORY_MB = 10.0
#: Difference of two lateness percentiles below which they are the same, in ms.
SAME_LATENESS_MS = 0.05


def write(section: Section) -> Iterator[str]:
    """Yield the parts of the page."""
    yield "# HTTP/2: CPU cost of a request"
    yield (
        f"Connections x streams, closed loop, nginx on the other core, responses of {len(http2.BODY) - 1} bytes"
        f" where nothing else is said; {section.plan['closed_s']} s per run, rounds: {section.plan['pairs']}, for k6"
        f" {section.plan['slow_rounds']}. CPU time is of the whole process with its start."
    )
    header = ["generator", "requests/s", "CPU us/request", "user", "system", "x h2load", "peak MB"]
    for shape in http2.SHAPES:
        if section.contenders(shape.name):
            yield f"## {shape.name}"
            order = sorted(section.contenders(shape.name), key=lambda name: cpu(section, shape.name, name) or 0.0)
            yield table(header, [_row(section, shape.name, name) for name in order])
    yield f"## {http2.OPEN[0].upper()}{http2.OPEN[1:]}"
    yield "Lateness is weir's own delay of a request, as weir reports it."
    header = ["generator", "requests/s", "lateness p99 ms", "p99 ms", "CPU us/request"]
    yield table(header, [_open(section, name) for name in section.contenders(http2.OPEN)])
    yield f"## Memory: {http2.MEMORY}"
    header = ["generator", "peak MB"]
    names = section.contenders(http2.MEMORY)
    yield table(
        header, [[name, number(section.median(http2.MEMORY, name, results.memory), "{:.1f}")] for name in names]
    )


def _row(section: Section, case: str, name: str) -> Row:
    return [
        *costs(section, case, name),
        number(section.ratio(case, name, http2.H2LOAD, results.cpu), "{:.2f}"),
        number(section.median(case, name, results.memory), "{:.1f}"),
    ]


def _open(section: Section, name: str) -> Row:
    case = http2.OPEN
    return [
        section.marked(case, name),
        number(section.median(case, name, results.rate), "{:,.0f}"),
        number(section.median(case, name, results.said("lateness_p99_ms")), "{:.3f}"),
        number(section.median(case, name, results.percentile("p99")), "{:.3f}"),
        number(cpu(section, case, name), "{:.2f}"),
    ]


#: Cause of a difference of latenesses at p99, with where it was measured.
NOISE = "p99 of either version differs by more from run to run: docs/design/http2.md, lateness in the open loop"


def _cause(section: Section, case: str, limit: float) -> str:
    """Name what of the time is the system's: weir's own part is beside that of h2load."""
    names = (http2.WEIR, http2.H2LOAD)
    user = [section.median(case, name, lambda trial: trial.user_us_per_request) for name in names]
    system = [section.median(case, name, lambda trial: trial.sys_us_per_request) for name in names]
    if None in (*user, *system):
        return ""
    mine, theirs, mine_of_system, theirs_of_system = (value or 0.0 for value in (*user, *system))
    allowed = limit * (theirs + theirs_of_system)
    left = allowed - mine_of_system
    floor = f"{left:.2f} us for user time, which is {mine:.2f}" if left > 0 else "system time alone is more"
    return (
        f"user time is {mine / theirs:.2f} x, but system time is {mine_of_system:.2f} us of the {allowed:.2f} that the"
        f" goal allows, since a faster client finds fewer responses at a wake-up; floor: {floor}"
    )


def judge(section: Section) -> Iterator[Goal]:
    """Yield the goals of the section."""
    for shape in http2.SHAPES:
        limit = MAX_MULTIPLEXED if shape.is_multiplexed else MAX_SINGLE
        found = section.ratio(shape.name, http2.WEIR, http2.H2LOAD, results.cpu)
        goal = at_most(f"{shape.name}: CPU per request at most {limit:.2f} x h2load", found, limit, "{:.2f} x")
        yield goal.because(_cause(section, shape.name, limit))
    found = section.median(http2.MEMORY, http2.WEIR, results.memory)
    single = section.median(http2.SHAPES[0].name, http2.WEIR, results.memory)
    goal = at_most(f"{http2.MEMORY}: at most {MAX_MEMORY_MB:.0f} MB", found, MAX_MEMORY_MB, "{:.1f} MB")
    yield goal.because(f"the command itself; floor: {single:.1f} MB with one connection" if single else "")
    for name in ("weir, 1 stream", "weir, 32 streams"):
        late = section.difference(http2.OPEN, name, "weir, HTTP/1.1", results.said("lateness_p99_ms"))
        promise = f"{http2.OPEN}, {name}: lateness at p99 at most {SAME_LATENESS_MS:g} ms above that of HTTP/1.1"
        yield at_most(promise, late, SAME_LATENESS_MS, "{:+.3f} ms").because(NOISE)
