"""Page and goals of the section on language models."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from harness import llm, results
from harness.llm_clients import WEIR
from harness.results import Section, Value
from harness.streams import PERCENTILES, deviation
from harness.table import Row, number, table
from harness.verdict import Goal, at_most

TIMES = ("TTFT", "TPOT")
#: The number of streams at which requests wait in the server's socket, which its record leaves out.
BUSIEST, BUSIEST_PERCENTILES = max(llm.CASES), ("p50", "p90", "p99")
#: Causes of TTFT that is beyond the record: with many streams, and with few.
SOCKET = "requests wait in the server's socket, which its record leaves out; floor: the packets, of which all TTFT is"
WAKE_UPS = "the wait in the server's socket, and the client's way from its clock to the packet: docs/design/streams.md"
MAX_CHUNK_US, MAX_MEMORY_MB = 2.0, 50.0


def write(section: Section) -> Iterator[str]:
    """Yield the parts of the page."""
    yield "# Language models: clients beside the server's own record"
    yield (
        f"`weir serve llm` on the other core: 50 ms of prefill, {llm.TOKENS} tokens per response at a known pace, and a"
        f" record of when each token was handed over to be written. Closed loop, one core for the client,"
        f" {section.plan['delay_s']} s per run, rounds: {section.plan['slow_rounds']}. TTFT is from the send, so that"
        " the record knows it; TPOT is (last chunk - first) / (tokens - 1), which guidellm and AIPerf call ITL."
    )
    yield (
        "TTFT of a client is longer than the record's by two waits at the server that the record does not have: a"
        " request waits in the socket until the server's event loop reads it, and a token until it is written. They"
        " grow with the number of requests and tokens that are due together. The packets of the loopback tell them from"
        " what the client adds: [whose part it is](../design/streams.md#whose-part-of-ttft)."
    )
    header = ["client", "TTFT p50", "record", "TTFT p99", "record", "TPOT p50", "record", "TPOT p99", "record"]
    for streams in llm.CASES:
        case = llm.case(streams)
        if section.contenders(case):
            yield f"## {case}"
            yield table(header, [_times(section, case, name) for name in section.contenders(case)])
            costs = ["client", "tokens/s", "CPU us/token", "user", "system", "peak MB"]
            yield table(costs, [_cost(section, case, name) for name in section.contenders(case)])


def _times(section: Section, case: str, name: str) -> Row:
    def ms(of: Value) -> str:
        return number(section.median(case, name, of), "{:.2f}")

    cells = [ms(of(time, key)) for time in TIMES for key in ("p50", "p99") for of in (_reported, _true)]
    return [section.marked(case, name), *cells]


def _cost(section: Section, case: str, name: str) -> Row:
    return [
        section.marked(case, name),
        number(section.median(case, name, results.rate), "{:,.0f}"),
        number(section.median(case, name, results.cpu), "{:.1f}"),
        number(section.median(case, name, lambda trial: trial.user_us_per_request), "{:.1f}"),
        number(section.median(case, name, lambda trial: trial.sys_us_per_request), "{:.1f}"),
        number(section.median(case, name, results.memory), "{:.1f}"),
    ]


def _reported(time: str, key: str) -> Value:
    return lambda trial: trial.report.get(time, {}).get(key)


def _true(time: str, key: str) -> Value:
    return lambda trial: trial.server.get(time, {}).get(key)


def _off(time: str, slack_ms: float = 0.05, keys: Iterable[str] = PERCENTILES) -> Value:
    return lambda trial: deviation(trial, time, slack_ms, keys)


def judge(section: Section) -> Iterator[Goal]:
    """Yield the goals of the section."""
    for streams in llm.CASES:
        case = llm.case(streams)
        for time in TIMES:
            if (streams, time) == (BUSIEST, "TTFT"):
                continue
            found = section.median(case, WEIR, _off(time))
            promise = f"{case}: every percentile of weir's {time} within 1% + 50 us of the record"
            yield at_most(promise, found, 1.0, "{:.2f} of that").because(WAKE_UPS if time == "TTFT" else "")
    largest = llm.case(BUSIEST)
    found = section.median(largest, WEIR, _off("TTFT", 1.0, BUSIEST_PERCENTILES))
    named = ", ".join(BUSIEST_PERCENTILES[:-1]) + f" and {BUSIEST_PERCENTILES[-1]}"
    goal = at_most(f"{largest}: weir's TTFT within 1% + 1 ms of the record at {named}", found, 1.0, "{:.2f} of that")
    yield goal.because(SOCKET)
    found = section.median(largest, WEIR, results.memory)
    yield at_most(f"{largest}: at most {MAX_MEMORY_MB:.0f} MB", found, MAX_MEMORY_MB, "{:.1f} MB")
    busiest = llm.case(100)
    found = section.median(busiest, WEIR, results.cpu)
    goal = at_most(f"{busiest}: at most {MAX_CHUNK_US:g} us CPU per token", found, MAX_CHUNK_US, "{:.2f} us")
    yield goal.because("wake-ups, and a read for each token; floor: that read, 2 us of system time")
