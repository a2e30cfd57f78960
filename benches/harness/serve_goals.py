"""Goals of `weir serve`."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from harness import results, served, soak
from harness.results import Section, Value
from harness.serving import NGINX, PEERS
from harness.trial import Trial
from harness.verdict import UNKNOWN, Goal, at_least, at_most, percent

#: Percentiles that are compared with those of the configured delays.
SHARES = {"p50": 0.50, "p90": 0.90, "p99": 0.99}
ERROR_MS = 1.0
#: CPU utilization above which the generator may limit the rate.
LIMITED = 0.95
GROWN_MB = 5.0

cpu = results.noted("cpu_us_per_request")
rate = results.noted("rate_per_s")


def judge(section: Section) -> Iterator[Goal]:
    """Yield the goals of the section."""
    yield from _beside_nginx(section)
    yield from _beside_peers(section)
    yield from _busy(section)
    yield from _delays(section)
    yield from _soak(section)


def per_cpu_second(trial: Trial) -> float | None:
    """Return responses per second of the server's CPU time."""
    us = cpu(trial)
    return 1e6 / us if us else None


def mb_per_cpu_second(trial: Trial) -> float | None:
    """Return megabytes of bodies per second of the server's CPU time."""
    us = results.noted("cpu_us_per_mb")(trial)
    return 1e6 / us if us else None


def over_cases(section: Section, loads: list[tuple[str, int, str]], peer: str, value: Value) -> float | None:
    """Compute the median of the ratios to a peer, over loads and pool sizes."""
    cases = [served.pool_case(*load, threads) for load in loads for threads in served.POOLS]
    ratios = [section.ratio(case, served.FUNCTIONS, peer, value) for case in cases]
    known = [ratio for ratio in ratios if ratio is not None]
    return median(known) if known else None


def error_ms(case: str, percentile: str, *, from_send: bool = False) -> Value:
    """Select the difference between a percentile of the responses and that of the configured delays, in ms."""
    low, high = served.DELAYS[case][1:] if case in served.DELAYS else (0.0, 0.0)
    asked = low + SHARES[percentile] * (high - low)
    measured = results.noted("service_ms", percentile) if from_send else results.percentile(percentile)

    def value(trial: Trial) -> float | None:
        found = measured(trial)
        return None if found is None else found - asked

    return value


def _beside_nginx(section: Section) -> Iterator[Goal]:
    for case, name in (
        (served.SMALL_GET, served.BODY),
        (served.SMALL_POST, served.BODY),
        (served.SMALL_GET, served.FUNCTIONS),
    ):
        found = section.ratio(case, name, NGINX, per_cpu_second)
        yield at_least(f"`{name}`, {case}: at least 0.80 x nginx in requests per CPU second", found, 0.8, "{:.2f} x")
    found = section.ratio(served.STATIC, served.BODY, NGINX, mb_per_cpu_second)
    yield at_least(
        f"`{served.BODY}`, {served.STATIC}: at least 0.90 x nginx in bytes per CPU second", found, 0.9, "{:.2f} x"
    )


def _beside_peers(section: Section) -> Iterator[Goal]:
    for mode in (served.CLOSES, served.KEEPS):
        loads = [load for load in served.POOL_LOADS if load[1:] == (served.MANY, mode)]
        for peer in PEERS:
            where = f"`{served.FUNCTIONS}`, {mode}, c={served.MANY}"
            found = over_cases(section, loads, peer, rate)
            form = "{:.2f} x" + _limited(section, loads, peer)
            yield at_least(f"{where}: at least the throughput of {peer}", found, 1.0, form)
            found = over_cases(section, loads, peer, cpu)
            yield at_most(f"{where}: at most the CPU per request of {peer}", found, 1.0, "{:.2f} x")


def _limited(section: Section, loads: list[tuple[str, int, str]], peer: str) -> str:
    """Format the number of measurements that were limited by the generator."""
    cases = [served.pool_case(*load, threads) for load in loads for threads in served.POOLS]
    known = [
        share
        for case in cases
        for name in (served.FUNCTIONS, peer)
        if (share := section.median(case, name, results.noted("generator_busy"))) is not None
    ]
    limited = sum(share >= LIMITED for share in known)
    return f"; limited by the generator in {limited} of {len(known)}" if limited else ""


def _busy(section: Section) -> Iterator[Goal]:
    for name in (served.RATELIMIT, served.WORK):
        found = section.median(served.BUSY, name, rate)
        yield at_least(f"`{name}`: at least 20,000 requests/s on one core", found, 20_000, "{:,.0f}/s")


def _delays(section: Section) -> Iterator[Goal]:
    for case, (name, _, _) in served.DELAYS.items():
        promise = f"`{name}`, {case}, {served.DELAY_RATE:,}/s: p50, p90 and p99 at most {ERROR_MS:g} ms off"
        errors = {which: section.median(case, name, error_ms(case, which)) for which in SHARES}
        known = {which: found for which, found in errors.items() if found is not None}
        if not known:
            yield Goal(promise, "", UNKNOWN)
            continue
        worst = max(known, key=lambda which: abs(known[which]))
        floor = section.median(served.NO_DELAY, served.BODY, error_ms(served.NO_DELAY, worst))
        form = f"{known[worst]:+.2f} ms at {worst}" + (f", without a delay {floor:+.2f} ms" if floor else "")
        yield at_most(promise, abs(known[worst]), ERROR_MS, form)


def _soak(section: Section) -> Iterator[Goal]:
    promises = (
        f"`{soak.SERVICE}`, soak of {section.plan['soak']:,}: no more open files after than before",
        f"`{soak.SERVICE}`, soak: memory grows by at most {GROWN_MB:g} MB",
        f"`{soak.SERVICE}`, soak: correct responses to all good requests, no bad connection left open",
    )
    trials = section.trials(soak.CASE, soak.SERVICE)
    if not trials:
        yield from (Goal(promise, "", UNKNOWN) for promise in promises)
        return
    noted, said = trials[0].server, trials[0].report
    before, after = noted["files_before"], noted["files_after"]
    yield at_most(promises[0], after, before, f"{before} before, {after} after")
    grown = noted["rss_after_mb"] - noted["rss_settled_mb"]
    yield at_most(promises[1], grown, GROWN_MB, "{:+.1f} MB")
    at_fault = said["wrong"] + said["unanswered"] + said["left_open"]
    measured = (
        f"{said['wrong']} wrong, {said['unanswered']} without response, {said['left_open']} left open"
        f" of {said['sent']:,}"
    )
    share = at_fault / max(said["sent"], 1)
    yield Goal(promises[2], measured, "reached" if at_fault == 0 else f"missed by {percent(share)}")
