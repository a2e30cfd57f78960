"""Page and goals of the section on gRPC."""

from __future__ import annotations

from collections.abc import Iterator

from harness import grpc, results
from harness.cost_columns import costs, cpu
from harness.results import Section
from harness.table import Row, number, table
from harness.verdict import Goal, at_most

#: CPU time per call as a fraction of ghz's, and of that of weir's own requests of the same bytes.
MAX_GHZ, MAX_PLAIN = 0.4, 1.3


def write(section: Section) -> Iterator[str]:
    """Yield the parts of the page."""
    yield "# gRPC: CPU cost of a call"
    yield (
        f"Connections x calls at a time on each, closed loop, unary calls with a text of {len(grpc.TEXT)} bytes to"
        f" `weir serve grpc` on the other core, which counts them; {section.plan['closed_s']} s per run, rounds:"
        f" {section.plan['pairs']}. CPU time is of the whole process with its start. `{grpc.PLAIN}` sends the same"
        f" bytes to the same server as requests of HTTP/2, without a look at messages and trailers."
    )
    header = ["generator", "calls/s", "CPU us/call", "user", "system", "x ghz", "x plain", "peak MB"]
    for shape in grpc.SHAPES:
        if section.contenders(shape.name):
            yield f"## {shape.name}"
            order = sorted(section.contenders(shape.name), key=lambda name: cpu(section, shape.name, name) or 0.0)
            yield table(header, [_row(section, shape.name, name) for name in order])
    yield f"## {grpc.OPEN[0].upper()}{grpc.OPEN[1:]}"
    yield "Ten connections. ghz counts from its send, weir from the intended start."
    header = ["generator", "calls/s", "p50 ms", "p99 ms", "CPU us/call"]
    yield table(header, [_open(section, name) for name in section.contenders(grpc.OPEN)])


def _row(section: Section, case: str, name: str) -> Row:
    return [
        *costs(section, case, name),
        number(section.ratio(case, name, grpc.GHZ, results.cpu), "{:.2f}"),
        number(section.ratio(case, name, grpc.PLAIN, results.cpu), "{:.2f}"),
        number(section.median(case, name, results.memory), "{:.1f}"),
    ]


def _open(section: Section, name: str) -> Row:
    case = grpc.OPEN
    return [
        section.marked(case, name),
        number(section.median(case, name, results.rate), "{:,.0f}"),
        number(section.median(case, name, results.percentile("p50")), "{:.3f}"),
        number(section.median(case, name, results.percentile("p99")), "{:.3f}"),
        number(cpu(section, case, name), "{:.2f}"),
    ]


def judge(section: Section) -> Iterator[Goal]:
    """Yield the goals of the section."""
    for shape in grpc.SHAPES:
        for base, limit in ((grpc.GHZ, MAX_GHZ), (grpc.PLAIN, MAX_PLAIN)):
            found = section.ratio(shape.name, grpc.WEIR, base, results.cpu)
            yield at_most(f"{shape.name}: CPU per call at most {limit:.2f} x {base}", found, limit, "{:.2f} x")
