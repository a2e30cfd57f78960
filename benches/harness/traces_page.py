"""Page and goals of the section on traces of language models."""

from __future__ import annotations

from collections.abc import Iterator

from harness import results, traces
from harness.llm_clients import WEIR
from harness.results import Section
from harness.table import Row, number, table
from harness.verdict import Goal, at_least, at_most

MAX_OFF_MS = 1.0
#: Cause of arrivals that are off: of 1.34 ms at p99, weir reported 0.65 ms as its own.
EVENT_LOOP = "the server's event loop, which makes the record, and half of it weir's own lateness, which is the floor"


def write(section: Section) -> Iterator[str]:
    """Yield the parts of the page."""
    yield "# Traces of language models: who keeps arrivals, lengths and shared blocks"
    yield (
        "A trace in Mooncake's format, replayed against `weir serve llm --record` on the other core: random arrivals,"
        f" prompts of up to {traces.MAX_SHARED} blocks of {traces.BLOCK} tokens from {traces.ROOTS} roots and a part of"
        f" their own, responses of up to {traces.MAX_OUTPUT} tokens. {section.plan['trace_s']} s per run, one core for"
        f" the client, rounds: {section.plan['trace_rounds']}, each with its own trace. The server's record judges: the"
        " k-th arrival is compared with the k-th of the trace, with the start for which half of the requests are early."
        " Prompts and responses: the fraction that has a recorded length, as the server counts tokens. Blocks, and"
        " blocks seen before: those at the server, by those in the trace."
    )
    yield (
        "All clients have a tokenizer whose tokens are three letters, so that four bytes are a token for the server as"
        " well. CPU includes the start of the client and the making of its prompts."
    )
    header = [
        "client", "off by p50 ms", "p99 ms", "max ms", "prompts", "tokens too many", "responses", "blocks", "seen",
        "CPU ms/request", "peak MB",
    ]  # fmt: skip
    for case in section.cases():
        if section.contenders(case):
            yield f"## {case}"
            yield table(header, [_row(section, case, name) for name in section.contenders(case)])


def _row(section: Section, case: str, name: str) -> Row:
    def of(*path: str) -> float | None:
        return section.median(case, name, results.noted(*path))

    cpu = section.median(case, name, results.cpu)
    return [
        name,
        *(number(of("off_ms", which), "{:,.3f}") for which in ("p50", "p99", "max")),
        number(of("prompts"), "{:.1%}"),
        number(of("excess_tokens"), "{:+.2f}"),
        *(number(of(which), "{:.1%}") for which in ("responses", "blocks", "seen_blocks")),
        number(None if cpu is None else cpu / 1000, "{:,.2f}"),
        number(section.median(case, name, results.memory), "{:.1f}"),
    ]


def judge(section: Section) -> Iterator[Goal]:
    """Yield the goals of the section."""
    for rate in traces.RATES:
        case = traces.case(rate)

        def of(*path: str, case: str = case) -> float | None:
            return section.median(case, WEIR, results.noted(*path))

        promise = f"{case}: 99% of weir's arrivals within {MAX_OFF_MS:g} ms of the trace"
        yield at_most(promise, of("off_ms", "p99"), MAX_OFF_MS, "{:.3f} ms").because(EVENT_LOOP)
        for what, words in (("prompts", "prompts"), ("responses", "responses")):
            yield at_least(f"{case}: all of weir's {words} have their length", of(what), 1.0, "{:.1%}")
        found = of("seen_blocks")
        yield at_most(
            f"{case}: weir's prompts share exactly the blocks of the trace",
            None if found is None else abs(found - 1.0),
            1e-9,
            "{:.1%} off",
        )
