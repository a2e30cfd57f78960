"""Goals of `weir gate` for responses in time."""

from __future__ import annotations

from collections.abc import Iterator
from math import sqrt

from harness import results, smart
from harness.results import Section
from harness.trial import Trial
from harness.verdict import UNKNOWN, Goal, at_least, at_most, percent, within

#: Fraction of successful calls: of 11 requests to the service 3 fail, and a call has up to three attempts.
CALCULATED = 1 - (3 / 11) ** 3
SHARE_OFF = 0.01
P999_MS, WORST_MS = 1.0, 5.0  # after the timeout
MANY_USERS, MANY_MS = 1_000, 50.0
CUT, HEDGED_SHARE = 0.90, 0.02
AMPLIFICATION = 1.06


def judge(section: Section) -> Iterator[Goal]:
    """Yield the goals of the section."""
    for load in smart.LOADS:
        yield from _load(section, load)
    yield from _hedging(section)
    for case in smart.STORMS:
        yield from _storm(section, case)


def share(trials: list[Trial]) -> tuple[float, float] | None:
    """Compute the fraction of successful calls of all rounds, and the standard error of the calculated fraction."""
    calls = sum(trial.server["calls"] for trial in trials)
    if not calls:
        return None
    good = sum(trial.server["successes"] for trial in trials)
    return good / calls, sqrt(CALCULATED * (1 - CALCULATED) / calls)


def latest_ms(trials: list[Trial]) -> float | None:
    """Return the maximum response time of all rounds."""
    return max((float(trial.server["max_ms"]) for trial in trials), default=None)


def _load(section: Section, load: tuple[int, int, int]) -> Iterator[Goal]:
    case, users = smart.load_case(*load), load[0]
    trials = section.trials(case, smart.SMART)
    yield _none_lost(f"{case}: no transport failure", trials)
    found = share(trials)
    promise = f"{case}: successes within 1% of the calculated {CALCULATED:.2%}, or two standard errors"
    if found is None:
        yield Goal(promise, "", UNKNOWN)
    else:
        good, error = found
        yield within(promise, good, CALCULATED, max(SHARE_OFF * CALCULATED, 2 * error), f"{{:.2%}} (+- {error:.2%})")
    worst = latest_ms(trials)
    if users < MANY_USERS:
        p999 = section.median(case, smart.SMART, results.percentile("p999"))
        yield _by(f"{case}: p99.9 at most T + {P999_MS:g} ms", p999, P999_MS)
        yield _by(f"{case}: every response by T + {WORST_MS:g} ms", worst, WORST_MS)
    else:
        yield _by(f"{case}: every response by T + {MANY_MS:g} ms", worst, MANY_MS)


def _by(promise: str, found_ms: float | None, allowed_ms: float) -> Goal:
    if found_ms is None:
        return Goal(promise, "", UNKNOWN)
    after_ms = found_ms - smart.TIMEOUT_MS
    return at_most(promise, found_ms, smart.TIMEOUT_MS + allowed_ms, f"T {after_ms:+.2f} ms")


def _none_lost(promise: str, trials: list[Trial]) -> Goal:
    if not trials:
        return Goal(promise, "", UNKNOWN)
    lost = sum(trial.server["transport_failures"] for trial in trials)
    calls = sum(trial.server["calls"] for trial in trials)
    verdict = "reached" if lost == 0 else f"missed by {percent(lost / calls)}"
    return Goal(promise, f"{lost} of {calls:,}", verdict)


def _hedging(section: Section) -> Iterator[Goal]:
    case = f"{smart.HEDGING}, {smart.REPLICAS} replicas"
    found = section.ratio(smart.HEDGING, smart.WITH, smart.WITHOUT, results.percentile("p999"))
    cut = None if found is None else 1 - found
    yield at_least(f"{case}: `{' '.join(smart.HEDGE)}` cuts p99.9 by at least {CUT:.0%}", cut, CUT, "{:.1%}")
    extra = section.median(smart.HEDGING, smart.WITH, results.noted("extra_share"))
    yield at_most(f"{case}: at most {HEDGED_SHARE:.0%} extra attempts", extra, HEDGED_SHARE, "{:.2%}")


def _storm(section: Section, case: str) -> Iterator[Goal]:
    extra = section.median(case, smart.STORM, results.noted("extra_share"))
    attempts = None if extra is None else 1 + extra
    promise = f"{case}: at most {AMPLIFICATION} attempts for each call"
    yield at_most(promise, attempts, AMPLIFICATION, "{:.3f}")
    promise = f"{case}: no more extra attempts than the budget allows, in every window of 1 s"
    windows = [
        trial.server["worst_window"] for trial in section.trials(case, smart.STORM) if "worst_window" in trial.server
    ]
    if not windows:
        yield Goal(promise, "", UNKNOWN)
        return
    worst = max(windows, key=lambda window: float(window["extra"] - window["allowed"]))
    form = f"{{:.0f}} of {worst['allowed']:.1f} for {worst['calls']:,} calls at worst"
    yield at_most(promise, worst["extra"], worst["allowed"], form)
