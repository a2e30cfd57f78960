"""The part of the page that is about overload."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from harness import overload, results
from harness.overload import BARE, CAPACITY, COST, DEADLINE_MS, GUARDED, REFUSALS, REFUSING, SLOTS, SMART, times_case
from harness.results import Section
from harness.smart import LOADS, load_case
from harness.table import Row, number, table
from harness.trial import Trial

METHOD = f"""\
`weir gate` has a core of its own; `weir serve work` with {SLOTS} slots and any number that wait for one shares the
other with the generator. Work takes 100 to 600 ms, so the slots do {CAPACITY:.1f} of them in a second. It goes on with
what nobody waits for any more. A call has T = {DEADLINE_MS:,} ms. Nothing about the limit is set.

Goodput is answers of the upstream in time, per second. Times come from the log of every request, in ms, from when a
call was due.
"""


def write(section: Section) -> Iterator[str]:
    """All tables of the section."""
    yield "# Overload: what there is capacity for, in time, and a quick no to the rest"
    yield METHOD.strip()
    yield from _open(section)
    yield from _loads(section)
    yield from _costs(section)


def doubts(section: Section) -> list[str]:
    """Why the generator does not trust its own run."""
    cases = [times_case(times) for times in overload.TIMES]
    return replace(section, every=[trial for trial in section.every if trial.case in cases]).doubts()


def _open(section: Section) -> Iterator[str]:
    yield "## Open loop, from half the capacity to ten times"
    yield f"Poisson arrivals, {section.plan['overload_s']} s a run, {section.plan['slow_rounds']} rounds."
    header = [
        "offered", "gate", "goodput/s", "of capacity", "good p50", "good p99", "good p99.9", "refused", "refused p50",
        "refused p99", "after T", "without response",
    ]  # fmt: skip
    cases = [(times, name) for times in overload.TIMES for name in (GUARDED, BARE)]
    rows = [_open_row(section, times, name) for times, name in cases if section.trials(times_case(times), name)]
    yield table(header, rows)


def _open_row(section: Section, times: float, name: str) -> Row:
    case = times_case(times)
    good = section.median(case, name, results.noted("good_per_s"))
    share = None if good is None else good / (min(times, 1.0) * CAPACITY)
    return [case, f"`{name}`", number(good, "{:.1f}"), number(share, "{:.1%}"), *_times(section, case, name)]


def _loads(section: Section) -> Iterator[str]:
    yield "## Six load tests on 50 slots"
    yield (
        f"`{SMART}`, `GET /api/smart/{DEADLINE_MS}`: of 11 pieces of work 8 are good, 1 is no JSON, 1 is a 500, and"
        " 1 holds its slot for 10 s, so that there is capacity for 42 in a second, good or bad; a call may send three."
    )
    header = [
        "load", "calls", "goodput/s", "good p50", "good p99", "good p99.9", "refused", "refused p50", "refused p99",
        "after T", "without response",
    ]  # fmt: skip
    rows = []
    for load in LOADS:
        case = load_case(*load)
        if trials := section.trials(case, SMART):
            calls = sum(trial.server["calls"] for trial in trials)
            good = section.median(case, SMART, results.noted("good_per_s"))
            rows.append([case, f"{calls:,}", number(good, "{:.1f}"), *_times(section, case, SMART)])
    yield table(header, rows)


def _times(section: Section, case: str, name: str) -> Row:
    def ms(what: str) -> str:
        return number(section.median(case, name, results.noted(what)), "{:.0f}")

    trials = section.trials(case, name)
    return [
        *(ms(f"good_{which}_ms") for which in ("p50", "p99", "p999")),
        _part(trials, "refused"),
        *(ms(f"refused_{which}_ms") for which in ("p50", "p99")),
        _part(trials, "late"),
        str(sum(trial.server["transport_failures"] for trial in trials)),
    ]


def _part(trials: list[Trial], kind: str) -> str:
    calls = sum(sum(trial.server["of"].values()) for trial in trials)
    return f"{sum(trial.server['of'][kind] for trial in trials) / max(calls, 1):.2%}"


def _costs(section: Section) -> Iterator[str]:
    yield "## What it costs"
    yield f"CPU time of the gate, {section.plan['pairs']} rounds of {section.plan['gate_s']} s."
    header = ["case", "gate", "us CPU per answer", "answers per second of CPU"]
    rows = []
    for case, name in ((COST, GUARDED), (COST, BARE), (REFUSALS, REFUSING)):
        cpu = section.median(case, name, results.noted("cpu_us"))
        rate = section.median(case, name, results.noted("answers_per_core_s"))
        rows.append([case, f"`{name}`", number(cpu, "{:.2f}"), number(rate, "{:,.0f}")])
    yield table(header, rows)
