"""Page of the section on overload."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from harness import culprits, overload, results
from harness.overload import (
    AFTER_MS,
    BARE,
    CAPACITY,
    COST,
    DEADLINE_MS,
    GUARDED,
    PEERS,
    REJECTING,
    REJECTIONS,
    SLOTS,
    SMART,
    times_case,
)
from harness.proxies import CADDY_LIMITED, ENVOY_GUARDED
from harness.results import Section
from harness.smart import LOADS, load_case
from harness.table import Row, number, table
from harness.trial import Trial

METHOD = f"""\
`weir gate` has its own core; `weir serve work`, with {SLOTS} slots and a queue of a million, shares the other with the
generator. A call takes 100 to 600 ms of work, so the capacity is {CAPACITY:.1f} calls/s. The service also finishes
abandoned work. The deadline of a call is T = {DEADLINE_MS:,} ms. The concurrency limit is the default.

Goodput is responses of the upstream by T + {AFTER_MS} ms, per second. Times are from the log of all requests, in ms,
from the intended start of a call.

Peers, as their documentation configures them ([why so](../design/gate-peers.md)): `{ENVOY_GUARDED}` has its example of
that filter, outlier detection and a timeout of 1 s. Caddy has no adaptive limit: `{CADDY_LIMITED}` is the number of
slots, which a person has to know; calls beyond it wait for up to 400 ms, and a response has 1 s.
"""


def write(section: Section) -> Iterator[str]:
    """Yield the parts of the page."""
    yield "# Overload: goodput, deadlines and quick rejections"
    yield METHOD.strip()
    yield from _open(section)
    yield from _loads(section)
    yield from _culprits(section)
    yield from _costs(section)


def doubts(section: Section) -> list[str]:
    """Return the generator's warnings on its own runs, of the open loops."""
    cases = [times_case(times) for times in overload.TIMES]
    return replace(section, every=[trial for trial in section.every if trial.case in cases]).doubts()


def _open(section: Section) -> Iterator[str]:
    yield "## Open loop, from half the capacity to ten times"
    yield f"Poisson arrivals, {section.plan['overload_s']} s per run, {section.plan['slow_rounds']} rounds."
    header = [
        "offered", "gate", "goodput/s", "of capacity", "good p50", "good p99", "good p99.9", "rejected", "rejected p50",
        "rejected p99", "after T", "without response",
    ]  # fmt: skip
    cases = [(times, name) for times in overload.TIMES for name in (GUARDED, BARE, *PEERS)]
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
        f"`{SMART}`, `GET /api/smart/{DEADLINE_MS}`: of 11 requests to the service 8 are good, 1 has a body that is not"
        " JSON, 1 is a 500, and 1 holds its slot for 10 s, so the capacity is 42 requests/s, good or bad; a call has up"
        " to three attempts."
    )
    header = [
        "load", "calls", "goodput/s", "good p50", "good p99", "good p99.9", "rejected", "rejected p50", "rejected p99",
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


def _culprits(section: Section) -> Iterator[str]:
    names = [name for name in culprits.KEYS if section.trials(culprits.CULPRITS, name)]
    if not names:
        return
    yield "## A route that takes the time of all others"
    yield (
        f"{culprits.SLOTS} slots, {culprits.LIGHT_PER_S:.0f} calls/s of 20 to 80 ms with a deadline of"
        f" {culprits.DEADLINE_MS:,} ms, which is 0.6 of the capacity; after {culprits.LEAD_S} s another route has"
        f" {culprits.HEAVY_PER_S:.1f} calls/s of {culprits.HEAVY_S * 1000:,.0f} ms, and the load is 1.5. Lost are calls"
        " without a success in time, from then on."
    )
    header = ["gate", "lost of the light calls", "in the rounds", "heavy calls served", "CPU s"]
    rows = []
    for name in names:
        lost = section.median(culprits.CULPRITS, name, results.noted("lost"))
        served = section.median(culprits.CULPRITS, name, results.noted("heavy_of", "200"))
        cpu = section.median(culprits.CULPRITS, name, results.noted("cpu_s"))
        spread = section.spread(culprits.CULPRITS, name, results.noted("lost"), "{:.2%}")
        rows.append([f"`{name}`", number(lost, "{:.2%}"), spread, number(served, "{:.0f}"), number(cpu, "{:.1f}")])
    yield table(header, rows)


def _times(section: Section, case: str, name: str) -> Row:
    def ms(what: str) -> str:
        return number(section.median(case, name, results.noted(what)), "{:.0f}")

    trials = section.trials(case, name)
    return [
        *(ms(f"good_{which}_ms") for which in ("p50", "p99", "p999")),
        _part(trials, "rejected"),
        *(ms(f"rejected_{which}_ms") for which in ("p50", "p99")),
        _late(trials),
        str(sum(trial.server["transport_failures"] for trial in trials)),
    ]


def _part(trials: list[Trial], kind: str) -> str:
    calls = sum(sum(trial.server["of"].values()) for trial in trials)
    return f"{sum(trial.server['of'][kind] for trial in trials) / max(calls, 1):.2%}"


def _late(trials: list[Trial]) -> str:
    """Format the fraction of calls whose time has passed: 504s, and successes that came later."""
    calls = sum(sum(trial.server["of"].values()) for trial in trials)
    late = sum(trial.server["of"]["late"] + trial.server["of"]["good"] - trial.server["in_time"] for trial in trials)
    return f"{late / max(calls, 1):.2%}"


def _costs(section: Section) -> Iterator[str]:
    yield "## CPU cost"
    yield f"CPU time of the gate, {section.plan['pairs']} rounds of {section.plan['gate_s']} s."
    header = ["case", "gate", "CPU us/response", "responses per second of CPU"]
    rows = []
    for case, name in ((COST, GUARDED), (COST, BARE), (REJECTIONS, REJECTING)):
        cpu = section.median(case, name, results.noted("cpu_us"))
        rate = section.median(case, name, results.noted("responses_per_core_s"))
        rows.append([case, f"`{name}`", number(cpu, "{:.2f}"), number(rate, "{:,.0f}")])
    yield table(header, rows)
