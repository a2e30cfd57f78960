"""Page and goals of `weir send` beside an oracle."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from harness import results
from harness.delivery import (
    ALL_WELL,
    AT_ONCE,
    DECLARED,
    DECLARED_JOBS,
    HANGING_FIRST,
    HOSTS,
    IN_TURN,
    LANES,
    LEARN_S,
    OUT_AFTER_S,
    OUT_S,
    OUTAGE_JOBS,
    OUTAGE_LIMIT,
    OUTAGES,
    RECIPE,
    SEND,
    UNDECLARED,
    Case,
    hosts_case,
)
from harness.limited import LATE_MS
from harness.results import Section
from harness.table import Row, number, table
from harness.verdict import UNKNOWN, Goal, at_least, at_most

X_ORACLE = 1.05
INTO_OUTAGE, FULL_PACE_S = 30, 1.0
OF_ORACLE, REJECTED_AFTER, REJECTED_ALL = 0.90, 0.02, 0.05
BESIDE_HANGING = 0.95
PERCENT = "{:.1%}"

METHOD = f"""\
The service is a process on its own core, and counts accepted and rejected requests by its own clock; senders share the
other core, up to {LANES} at a time in the first three tables. One key; one-way delays of 2 to 20 ms, 10 to 50 ms of
work. The oracle is calculated: a client without network delay that reads the service's count and begins with the first
request. A run whose service was itself late by more than {LATE_MS:.0f} ms for 1% of the time is marked.

`weir send` has its defaults and the flags in the tables. The other sender is a typical script: {AT_ONCE} workers,
aiolimiter with the declared limit, and tenacity with six attempts, random exponential waits of 1 to 60 s, or the wait
of a `Retry-After` (`benches/scripts/recipe.py`). Figures are medians over the rounds, with minimum and maximum.
"""


def write(section: Section) -> Iterator[str]:
    """Yield the parts of the page."""
    yield "# Delivery: `weir send` beside an oracle, with wrong and with undeclared limits"
    yield METHOD.strip()
    yield f"Rounds: {section.plan['delivery_rounds']}, with the other sender {section.plan['recipe_rounds']}."
    recipes = [trial.report.get("versions") for trial in section.every if trial.report.get("versions")]
    if recipes:
        yield f"The other sender: {recipes[0]}."
    yield "## Declared limits that do not hold"
    yield (
        f"{DECLARED_JOBS:,} jobs, `--limit {DECLARED[0].declared}`; headers are those of OpenAI. Time until all are"
        " accepted; jobs that are given up shorten it."
    )
    header = ["difference", "sender", "s", "x oracle", "min to max", "rejected", "given up"]
    yield table(header, _rows(section, DECLARED, _declared))
    yield f"## An outage of {OUT_S:g} s"
    yield (
        f"{OUTAGE_JOBS:,} jobs, `--limit {OUTAGE_LIMIT}`, the outage begins {OUT_AFTER_S:g} s after the first request."
        " Full rate after: maximum delay of a delivery against a steady rate of the limit from the end of the outage"
        " on. Requests to a service that does not listen are counted by the sender."
    )
    header = [
        "outage", "sender", "delivered", "given up", "requests into it", "first after s", "full rate after s",
        "min to max",
    ]  # fmt: skip
    yield table(header, _rows(section, OUTAGES, _outage))
    yield "## Limits that are not declared"
    yield (
        f"More jobs than the limit allows, {section.plan['learn_s']} s. Throughput after the first {LEARN_S:g} s, as a"
        " fraction of the oracle's in the same time; over 100% where the oracle has used more before. Rejected:"
        f" fraction of the requests, after {LEARN_S:g} s and in all."
    )
    header = [
        "limit", "sender", "of the oracle", "min to max", f"rejected after {LEARN_S:g} s", "in all", "given up",
    ]  # fmt: skip
    yield table(header, _rows(section, UNDECLARED, _undeclared))
    yield "## One host of six hangs"
    yield (
        f"{section.plan['host_jobs']:,} jobs for each of {HOSTS} hosts that work 100 to 200 ms; one accepts requests"
        " and never responds. The rate of the other five, compared with runs without the one that hangs."
    )
    header = ["sender", "hosts", "delivered by the five", "per s", f"x {ALL_WELL}", "min to max"]
    yield table(header, _hosts(section))


def judge(section: Section) -> Iterator[Goal]:
    """Yield the goals of the section."""
    for case in DECLARED:
        promise = f"{case.name}: done in at most {X_ORACLE:g} x the oracle's time"
        yield at_most(promise, _median(section, case, "x_oracle"), X_ORACLE, "{:.3f} x")
        yield _none_lost(section, case, case.name, DECLARED_JOBS)
    for case in OUTAGES:
        outage = f"outage, {case.name}"
        yield _none_lost(section, case, outage, OUTAGE_JOBS)
        promise = f"{outage}: at most {INTO_OUTAGE} requests into it"
        yield at_most(promise, _median(section, case, "into_outage"), INTO_OUTAGE, "{:.0f}")
        promise = f"{outage}: full rate within {FULL_PACE_S:g} s of its end"
        yield at_most(promise, _median(section, case, "full_pace_s"), FULL_PACE_S, "{:.2f} s")
    for case in UNDECLARED:
        yield from _learnt(section, case)
    for hosts in (IN_TURN, HANGING_FIRST):
        found = section.ratio(hosts_case(SEND), hosts, ALL_WELL, results.noted("pace_per_s"))
        promise = f"{hosts}: the others keep {BESIDE_HANGING:.0%} of their pace"
        yield at_least(promise, found, BESIDE_HANGING, PERCENT)


def _median(section: Section, case: Case, what: str) -> float | None:
    """Compute the median over the runs of `weir send`."""
    return section.median(case.name, SEND, results.noted(what))


def _none_lost(section: Section, case: Case, what: str, jobs: int) -> Goal:
    promise = f"{what}: all jobs delivered, none given up"
    trials = section.trials(case.name, SEND)
    if not trials:
        return Goal(promise, "", UNKNOWN)
    lost = sum(jobs - trial.server["delivered"] for trial in trials)
    given_up = sum(trial.server["given_up"] for trial in trials)
    verdict = "missed" if lost or given_up else "reached"
    return Goal(promise, f"{lost} not delivered, {given_up} given up", verdict)


def _learnt(section: Section, case: Case) -> Iterator[Goal]:
    what = f"{case.name}, not declared"
    promise = f"{what}: {OF_ORACLE:.0%} of the oracle after {LEARN_S:g} s"
    yield at_least(promise, _median(section, case, "of_oracle"), OF_ORACLE, PERCENT)
    promise = f"{what}: at most {REJECTED_AFTER:.0%} rejected after {LEARN_S:g} s"
    yield at_most(promise, _median(section, case, "rejected_after"), REJECTED_AFTER, "{:.2%}")
    promise = f"{what}: at most {REJECTED_ALL:.0%} rejected in all"
    yield at_most(promise, _median(section, case, "rejected_all"), REJECTED_ALL, "{:.2%}")
    given_up = [trial.server["given_up"] for trial in section.trials(case.name, SEND)]
    verdict = "missed" if any(given_up) else "reached" if given_up else UNKNOWN
    yield Goal(f"{what}: no job lost", str(sum(given_up)) if given_up else "", verdict)


# --- Rows


def _rows(section: Section, cases: Iterable[Case], row: Callable[[_Figures], Row]) -> Iterator[Row]:
    for case in cases:
        for name in (SEND, RECIPE):
            if section.trials(case.name, name):
                yield [case.name, section.marked(case.name, name), *row(_Figures(section, case.name, name))]


class _Figures:
    """Figures of a case with a sender."""

    def __init__(self, section: Section, case: str, name: str) -> None:
        self._section, self._case, self._name = section, case, name

    def median(self, what: str, form: str) -> str:
        return number(self._section.median(self._case, self._name, results.noted(what)), form)

    def spread(self, what: str, form: str) -> str:
        return self._section.spread(self._case, self._name, results.noted(what), form)


def _declared(of: _Figures) -> Row:
    figures = [of.median("took_s", "{:.2f}"), of.median("x_oracle", "{:.3f}"), of.spread("x_oracle", "{:.3f}")]
    return [*figures, of.median("rejected", "{:,.0f}"), of.median("given_up", "{:,.0f}")]


def _outage(of: _Figures) -> Row:
    counts = [of.median(what, "{:,.0f}") for what in ("delivered", "given_up", "into_outage")]
    times = [of.median(what, "{:.2f}") for what in ("first_s", "full_pace_s")]
    return [*counts, *times, of.spread("full_pace_s", "{:.2f}")]


def _undeclared(of: _Figures) -> Row:
    share = [of.median("of_oracle", PERCENT), of.spread("of_oracle", PERCENT)]
    rejected = [of.median(what, "{:.2%}") for what in ("rejected_after", "rejected_all")]
    return [*share, *rejected, of.median("given_up", "{:,.0f}")]


def _hosts(section: Section) -> Iterator[Row]:
    pace = results.noted("pace_per_s")
    for name in (SEND, RECIPE):
        case = hosts_case(name)
        for hosts in (ALL_WELL, IN_TURN, HANGING_FIRST):
            if section.trials(case, hosts):
                ratio = section.ratio(case, hosts, ALL_WELL, pace)
                delivered = number(section.median(case, hosts, results.noted("delivered")), "{:,.0f}")
                yield [
                    name, section.marked(case, hosts), delivered, number(section.median(case, hosts, pace), "{:,.0f}"),
                    "" if hosts == ALL_WELL else number(ratio, "{:.3f}"), section.spread(case, hosts, pace, "{:,.0f}"),
                ]  # fmt: skip
