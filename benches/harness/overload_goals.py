"""Goals of `weir gate` under overload."""

from __future__ import annotations

from collections.abc import Iterator

from harness import culprits, overload, results
from harness.results import Section
from harness.smart import LOADS, load_case
from harness.verdict import UNKNOWN, Goal, at_least, at_most

#: Minimum goodput, as a fraction of the smaller of load and capacity.
FLAT = 0.90
REJECTED_MS = 10
PER_CORE_S = 100_000
COSTS = 1.05
#: Good calls that a route of 2% of the calls and 60% of the time may cost the others.
LOST = 0.05


def judge(section: Section) -> Iterator[Goal]:
    """Yield the goals of the section."""
    for times in overload.TIMES:
        yield from _open(section, times)
    for load in LOADS:
        case = load_case(*load)
        yield _in_time(section, case, overload.SMART)
        yield _quickly(section, case, overload.SMART)
    lost = section.median(culprits.CULPRITS, culprits.SHEDDING, results.noted("lost"))
    counted = section.median(culprits.CULPRITS, culprits.COUNTING, results.noted("lost"))
    without = "" if counted is None else f" ({counted:.1%} without)"
    yield at_most(
        f"{culprits.CULPRITS}: the others lose at most {LOST:.0%} of their good calls by `shed_culprits`{without}",
        lost,
        LOST,
        "{:.2%}",
    )
    rate = section.median(overload.REJECTIONS, overload.REJECTING, results.noted("responses_per_core_s"))
    yield at_least(f"at least {PER_CORE_S:,} rejections/s per core", rate, PER_CORE_S, "{:,.0f}/s")
    cost = section.ratio(overload.COST, overload.GUARDED, overload.BARE, results.noted("cpu_us"))
    yield at_most(f"at most {COSTS - 1:.0%} more CPU per request at normal load", cost, COSTS, "{:.3f} x")


def _open(section: Section, times: float) -> Iterator[Goal]:
    case = overload.times_case(times)
    good = section.median(case, overload.GUARDED, results.noted("good_per_s"))
    share = None if good is None else good / (min(times, 1.0) * overload.CAPACITY)
    yield at_least(f"{case}: goodput at least {FLAT:.0%} of load or capacity", share, FLAT, "{:.1%}")
    yield _in_time(section, case, overload.GUARDED)
    if times > 1:
        yield _quickly(section, case, overload.GUARDED)


def _in_time(section: Section, case: str, name: str) -> Goal:
    found = section.median(case, name, results.noted("good_p999_ms"))
    promise = f"{case}: accepted responses by T + {overload.AFTER_MS} ms at p99.9"
    if found is None:
        return Goal(promise, "", UNKNOWN)
    return at_most(
        promise, found, overload.DEADLINE_MS + overload.AFTER_MS, f"T {found - overload.DEADLINE_MS:+.0f} ms"
    )


def _quickly(section: Section, case: str, name: str) -> Goal:
    """Make the goal of the time to a rejection; reached without rejections."""
    promise = f"{case}: rejected in at most {REJECTED_MS} ms at p99"
    trials = section.trials(case, name)
    if not trials:
        return Goal(promise, "", UNKNOWN)
    found = section.median(case, name, results.noted("rejected_p99_ms"))
    if found is None:
        return Goal(promise, "nothing rejected", "reached")
    return at_most(promise, found, REJECTED_MS, "{:.0f} ms")
