"""Page and goals of the section on WebSocket."""

from __future__ import annotations

from collections.abc import Iterator

from harness import results, websocket
from harness.cost_columns import costs
from harness.results import Section
from harness.table import Row, number, table
from harness.verdict import Goal, at_most

MAX_MESSAGE_US, MAX_FLOORS, MAX_MEMORY_MB = 4.0, 1.2, 100.0


def write(section: Section) -> Iterator[str]:
    """Yield the parts of the page."""
    yield "# WebSocket: CPU cost of a message"
    yield (
        "Generator on one core, `weir serve ws` on the other, which echoes and counts; messages of 15 bytes; rounds:"
        f" {section.plan['pairs']}, of k6 {section.plan['slow_rounds']}. CPU time is of the whole process with its"
        " start. `floor` is a bare epoll loop that sends a fixed frame, counts bytes and measures nothing: one send and"
        " one receive of the kernel for each message. The cost of a request of plain HTTP is in"
        " [closed loop](closed.md)."
    )
    header = ["generator", "messages/s", "CPU us/message", "user", "system", "p50 ms", "p99 ms", "peak MB"]
    for case in (websocket.CLOSED, websocket.OPEN):
        yield f"## {case[0].upper()}{case[1:]}"
        yield table(header, [_row(section, case, name) for name in section.contenders(case)])
    yield f"## {websocket.IDLE}"
    yield "Connections are made over half of the run."
    yield table(header, [_row(section, websocket.IDLE, name) for name in section.contenders(websocket.IDLE)])


def _row(section: Section, case: str, name: str) -> Row:
    return [
        *costs(section, case, name),
        number(section.median(case, name, results.said("p50")), "{:.3f}"),
        number(section.median(case, name, results.said("p99")), "{:.3f}"),
        number(section.median(case, name, results.memory), "{:.1f}"),
    ]


def judge(section: Section) -> Iterator[Goal]:
    """Yield the goals of the section."""
    found = section.median(websocket.CLOSED, websocket.WEIR, results.cpu)
    promise = f"{websocket.CLOSED}: at most {MAX_MESSAGE_US:g} us CPU per message"
    bare = section.median(websocket.CLOSED, websocket.FLOOR, results.cpu)
    cause = f"the floor takes {bare:.2f} us" if bare else ""
    yield at_most(promise, found, MAX_MESSAGE_US, "{:.2f} us").because(cause)
    found = section.ratio(websocket.CLOSED, websocket.WEIR, websocket.FLOOR, results.cpu)
    yield at_most(f"{websocket.CLOSED}: CPU per message at most {MAX_FLOORS:g} x floor", found, MAX_FLOORS, "{:.2f} x")
    if websocket.K6 in section.contenders(websocket.CLOSED):
        found = section.ratio(websocket.CLOSED, websocket.WEIR, websocket.K6, results.cpu)
        yield at_most(f"{websocket.CLOSED}: CPU per message at most 0.1 x k6", found, 0.1, "{:.3f} x")
    found = section.median(websocket.IDLE, websocket.WEIR, results.memory)
    yield at_most(f"{websocket.IDLE}: at most {MAX_MEMORY_MB:.0f} MB", found, MAX_MEMORY_MB, "{:.1f} MB")
