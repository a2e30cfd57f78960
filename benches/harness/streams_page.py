"""Page and goals of the section on streams of events."""

from __future__ import annotations

from collections.abc import Iterator

from harness import results, streams
from harness.cost_columns import costs
from harness.results import Section, Value
from harness.table import Row, number, table
from harness.trial import Trial
from harness.verdict import Goal, at_most

MAX_EVENT_US, MAX_CORE, MAX_MEMORY_MB = 2.0, 0.05, 50.0


def write(section: Section) -> Iterator[str]:
    """Yield the parts of the page."""
    yield "# Streams of events"
    yield (
        f"`weir serve stream` on the other core plays events at known times and records when it handed each over to be"
        f" written; weir's percentiles beside those of this record. {section.plan['delay_s']} s per run, rounds:"
        f" {section.plan['pairs']}. Of each time the row has the percentile that deviates most, as a fraction of"
        " 1% + 50 us: 1 is the limit."
    )
    header = [
        "streams",
        "version",
        "first event p50",
        "record",
        "gap p50",
        "record",
        "gap p99.9",
        "record",
        "off: first",
        "off: gap",
    ]
    rows = [_truth(section, shape.name, name) for shape in streams.TRUTH for name in section.contenders(shape.name)]
    yield table(header, rows)
    yield f"## Cost: {streams.COST}"
    yield (
        f"Server-sent events with {streams.EVENT_BYTES} bytes and more of data, one per packet. CPU time is of the"
        " whole process."
    )
    header = ["version", "events/s", "CPU us/event", "user", "system", "of a core", "peak MB"]
    yield table(header, [_cost(section, name) for name in section.contenders(streams.COST)])


def _truth(section: Section, case: str, name: str) -> Row:
    def ms(of: Value) -> str:
        return number(section.median(case, name, of), "{:.2f}")

    return [
        case,
        section.marked(case, name),
        *[ms(of("first event", "p50")) for of in (_reported, _true)],
        *[ms(of("gap", "p50")) for of in (_reported, _true)],
        *[ms(of("gap", "p999")) for of in (_reported, _true)],
        number(section.median(case, name, _off("first event")), "{:.2f}"),
        number(section.median(case, name, _off("gap")), "{:.2f}"),
    ]


def _cost(section: Section, name: str) -> Row:
    case = streams.COST
    return [
        *costs(section, case, name),
        number(section.median(case, name, _of_a_core), "{:.1%}"),
        number(section.median(case, name, results.memory), "{:.1f}"),
    ]


def _of_a_core(trial: Trial) -> float:
    return trial.cpu_us_per_request * trial.rate_per_s / 1e6


def _reported(time: str, percentile: str) -> Value:
    return lambda trial: trial.report.get(time, {}).get(percentile)


def _true(time: str, percentile: str) -> Value:
    return lambda trial: trial.server.get(time, {}).get(percentile)


def _off(time: str) -> Value:
    return lambda trial: streams.deviation(trial, time)


def judge(section: Section) -> Iterator[Goal]:
    """Yield the goals of the section."""
    for shape in streams.TRUTH:
        for name in section.contenders(shape.name):
            for time in streams.TIMES:
                found = section.median(shape.name, name, _off(time))
                promise = f"{shape.name}, {name}: every percentile of the {time} within 1% + 50 us of the record"
                yield at_most(promise, found, 1.0, "{:.2f} of that")
    for name in section.contenders(streams.COST):
        found = section.median(streams.COST, name, results.cpu)
        yield at_most(
            f"{streams.COST}, {name}: at most {MAX_EVENT_US:g} us CPU per event", found, MAX_EVENT_US, "{:.2f} us"
        )
        found = section.median(streams.COST, name, _of_a_core)
        yield at_most(f"{streams.COST}, {name}: at most {MAX_CORE:.0%} of a core", found, MAX_CORE, "{:.1%}")
    largest = streams.TRUTH[-1].name
    for name in section.contenders(largest):
        found = section.median(largest, name, results.memory)
        yield at_most(f"{largest}, {name}: at most {MAX_MEMORY_MB:.0f} MB", found, MAX_MEMORY_MB, "{:.1f} MB")
