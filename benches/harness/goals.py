"""Goals of weir, compared with the trials."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from statistics import median

from harness import (
    agents_page,
    client_goals,
    delivery_page,
    gate_goals,
    grpc_page,
    harm_page,
    http2_page,
    limiters_page,
    llm_page,
    memory,
    opened,
    overload_goals,
    results,
    scenario,
    scenario_page,
    scripts_page,
    send_goals,
    serve_goals,
    sharing_page,
    smart_goals,
    streams_page,
    traces_page,
    truth,
    verdicts_goals,
    watched_page,
    websocket_page,
)
from harness.results import Section, Value
from harness.trial import Trial
from harness.verdict import UNKNOWN, Goal, at_most, within

PERCENTILES = ("p50", "p75", "p90", "p95", "p99", "p999")


def judge(section: Section) -> list[Goal]:
    """Return the goals of the section."""
    parts: dict[str, Callable[[Section], Iterator[Goal]]] = {
        "closed": _closed,
        "open": _open,
        "truth": _truth,
        "memory": _memory,
        "scenario": scenario_page.judge,
        "scripts": scripts_page.judge,
        "http2": http2_page.judge,
        "grpc": grpc_page.judge,
        "streams": streams_page.judge,
        "websocket": websocket_page.judge,
        "llm": llm_page.judge,
        "traces": traces_page.judge,
        "watched": watched_page.judge,
        "serve": serve_goals.judge,
        "gate": gate_goals.judge,
        "client": client_goals.judge,
        "smart": smart_goals.judge,
        "overload": overload_goals.judge,
        "harm": harm_page.judge,
        "send": send_goals.judge,
        "delivery": delivery_page.judge,
        "limiter": limiters_page.judge,
        "shared": sharing_page.judge,
        "verdicts": verdicts_goals.judge,
        "agents": agents_page.judge,
    }
    return list(parts[section.name](section))


def _closed(section: Section) -> Iterator[Goal]:
    limits = (("lean", "floor", 1.10), ("nginx", "floor", 1.10), ("lean", "wrk", 0.90), ("nginx", "wrk", 0.95))
    for target, base, limit in limits:
        found = section.ratio(target, "weir", base, results.cpu)
        promise = f"closed loop, {target}: CPU per request at most {limit:.2f} x {base}"
        yield at_most(promise, found, limit, "{:.2f} x")


def _open(section: Section) -> Iterator[Goal]:
    even, fast = opened.case(opened.RATE), opened.case(opened.FAST_RATE)
    deviation = results.noted("deviation_us", "p99")
    found = section.median(even, "weir", deviation)
    yield at_most(f"{even}: arrivals leave an even schedule by at most 100 us at p99", found, 100, "{:.0f} us")
    found = section.median(even, "weir", results.cpu)
    yield at_most(f"{even}: at most 24 us CPU per request", found, 24, "{:.1f} us")
    found = section.median(even, "weir --spin", deviation)
    yield at_most(f"{even} with --spin: at most 10 us off at p99", found, 10, "{:.1f} us")
    for case, rate, share in ((even, opened.RATE, 0.001), (fast, opened.FAST_RATE, 0.005)):
        found = section.median(case, "weir", _achieved(rate))
        yield within(f"{case}: achieved rate within {share:.1%}", found, rate, share * rate, "{:,.1f}/s")
    yield _lateness(section, fast)


def _achieved(rate: int) -> Value:
    """Return the achieved rate by the server's count or by its clock, whichever deviates more from `rate`."""

    def value(trial: Trial) -> float | None:
        by_clock = results.noted("rate_per_s")(trial)
        rates = [trial.rate_per_s] if by_clock is None else [trial.rate_per_s, by_clock]
        return max(rates, key=lambda found: abs(found - rate))

    return value


def _lateness(section: Section, case: str) -> Goal:
    promise = f"{case}: lateness at most 1 ms at p99, or the run reports that it was late"
    goal = at_most(promise, section.median(case, "weir", results.said("lateness_p99_ms")), 1.0, "{:.2f} ms")
    trials = section.trials(case, "weir")
    if goal.verdict.startswith("missed") and all(t.report.get("trusted") is False for t in trials):
        return Goal(promise, f"{goal.measured}, and reported", "reached")
    return goal


def _truth(section: Section) -> Iterator[Goal]:
    for case, contender in (
        (truth.FROZEN, "weir -c 50"),
        (truth.FROZEN, "weir"),
        (truth.STOPPED, "weir -c 50"),
    ):
        for name, true_ms in (("p90", 500.0), ("p99", 950.0)):
            found = section.median(case, contender, results.percentile(name))
            promise = f"service {case} for 1 s in 5, `{contender}`: {name} within 5% of {true_ms:.0f} ms"
            yield within(promise, found, true_ms, 0.05 * true_ms, "{:.0f} ms")
    for case in truth.DELAYS:
        for contender in section.contenders(case):
            yield _percentiles(case, contender, section.trials(case, contender))
    found = section.median(truth.SATURATED, "weir", results.little)
    yield within("Little's law at saturation within 2%", found, 1.0, 0.02, "{:.3f}")


def _percentiles(case: str, contender: str, trials: list[Trial]) -> Goal:
    """Make one goal for all percentiles, by the one that deviates most relative to its tolerance."""
    slack_ms = 0.05 if contender.startswith((scenario.ONE, truth.HTTP2)) else 0.1
    promise = f"delay {case}, `{contender}`: every percentile within 1% + {1000 * slack_ms:.0f} us of the truth"
    worst: tuple[float, Goal] | None = None
    for name in PERCENTILES:
        reported = _median(trials, results.percentile(name))
        true_ms = _median(trials, results.noted(name))
        if reported is None or true_ms is None:
            continue
        allowed = 0.01 * true_ms + slack_ms
        goal = within(promise, reported, true_ms, allowed, "{:.2f} ms")
        off = abs(reported - true_ms) / allowed
        measured = f"worst is {name}: {reported:.2f} ms, truth {true_ms:.2f} ms"
        if worst is None or off > worst[0]:
            worst = off, Goal(promise, measured, goal.verdict)
    return worst[1] if worst else Goal(promise, "", UNKNOWN)


def _memory(section: Section) -> Iterator[Goal]:
    short, long = section.plan["memory_s"], section.plan["long_s"]
    few, many = memory.case(memory.FEW, short), memory.case(memory.MANY, short)
    peak = section.median(few, "weir", results.memory)
    yield at_most("100 connections: at most 8 MB", peak, 8, "{:.1f} MB")
    found = section.median(many, "weir", results.memory)
    yield at_most("10,000 connections: at most 40 MB", found, 40, "{:.1f} MB")
    later = section.median(memory.case(memory.FEW, long), "weir", results.memory)
    grown = later / peak if later and peak else None
    yield at_most(f"memory flat from {short} s to {long} s: at most 1.05 x", grown, 1.05, "{:.3f} x")
    yield _faultless("10,000 connections, closed loop: no failure", section.trials(many, "weir"), 1)
    asked = memory.USERS * memory.LOOPS
    trials = section.trials(memory.USERS_CASE, "weir")
    yield _faultless(f"{memory.USERS_CASE}: no failure", trials, asked)


def _faultless(promise: str, trials: list[Trial], asked: int) -> Goal:
    if not trials:
        return Goal(promise, "", UNKNOWN)
    failed = sum(trial.report.get("failed") or 0 for trial in trials)
    served = min(trial.requests for trial in trials)
    measured = f"{failed} failed, {served:,} served"
    if failed == 0 and served >= asked:
        return Goal(promise, measured, "reached")
    return Goal(promise, measured, f"missed by {100 * max(failed, asked - served) / max(served, asked):.2g}%")


def _median(trials: list[Trial], value: Value) -> float | None:
    known = [number for number in map(value, trials) if number is not None]
    return median(known) if known else None
