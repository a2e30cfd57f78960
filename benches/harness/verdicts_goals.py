"""Goals of weir's verdicts."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from harness.results import Section
from harness.trial import Trial
from harness.verdict import Goal, at_least, at_most
from harness.verdicts import (
    CAPACITY,
    KNOWN,
    SAME,
    SLOWED,
    STUDY,
    brackets,
    calls_a_difference,
    calls_it_worse,
    is_close,
)

FALSE_ALARMS, FOUND, BRACKETED = 0.05, 0.90, 0.95


def judge(section: Section) -> Iterator[Goal]:
    """Yield the goals of the section."""
    false_alarms = share(section, SAME, STUDY, calls_a_difference)
    found = share(section, SLOWED, STUDY, calls_it_worse)
    yield at_most(
        f"{SAME}: a difference in any metric in at most {FALSE_ALARMS:.0%}",
        false_alarms,
        FALSE_ALARMS,
        "{:.0%}",
    )
    yield at_least(f"{SLOWED}: worse in at least {FOUND:.0%}", found, FOUND, "{:.0%}")
    for what, holds in (("both bounds within 5% of the capacity", is_close), ("between the bounds", brackets)):
        found = share(section, KNOWN, CAPACITY, holds)
        yield at_least(f"{KNOWN}: {what} in at least {BRACKETED:.0%}", found, BRACKETED, "{:.0%}")


def share(section: Section, case: str, contender: str, holds: Callable[[Trial], bool]) -> float | None:
    """Compute the fraction of the trials for which `holds` is true."""
    trials = section.trials(case, contender)
    return sum(map(holds, trials)) / len(trials) if trials else None
