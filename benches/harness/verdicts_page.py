"""The part of the page that is about verdicts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from statistics import median

from harness import verdicts
from harness.results import Section
from harness.table import table
from harness.trial import Trial
from harness.verdicts import CAPACITY, KNOWN, SAME, SLOWED, STUDY

SLOW_MS = verdicts.DELAY_MS * verdicts.SLOWER
METHOD = f"""\
What `weir study` and `weir capacity` report of real services whose truth is known, many times over. A study has the
default number of rounds, each with both variants started anew and loaded with {verdicts.CONNECTIONS} connections. The
two that are the same are `weir serve httpbin`, as fast as two cores let it be; of the others one responds after
{verdicts.DELAY_MS:g} ms in {verdicts.SLOTS} slots, and the other after {SLOW_MS:g} ms. The capacity is that of
{verdicts.POOL} slots of {verdicts.LEAST_MS:g} ms, and of {verdicts.MORE_MS:g} ms more in each search after the first,
with random arrivals and `--slo "{verdicts.OBJECTIVE}"`. A load that is a little too large passes a step of
{verdicts.STEP}, since the queue takes longer to grow; so the lower end is less than the load that was tried. The
statistics behind them are held by simulations in the tests; this shows what is left of it among real processes.
"""


def write(section: Section) -> Iterator[str]:
    """All tables of the section."""
    yield "# Verdicts: are reported differences and limits true?"
    yield METHOD.strip()
    rows = []
    for case, what, holds in (
        (SAME, "a difference is called, in any figure", verdicts.calls_a_difference),
        (SLOWED, "called worse", verdicts.calls_it_worse),
    ):
        trials = section.trials(case, STUDY)
        rows.append([case, STUDY, what, _of(trials, holds), _effect(trials)])
    trials = section.trials(KNOWN, CAPACITY)
    rows.append([KNOWN, CAPACITY, "both ends within 5 %", _of(trials, verdicts.is_close), _bracket(trials)])
    rows.append([KNOWN, CAPACITY, "between the ends", _of(trials, verdicts.brackets), ""])
    yield table(["case", "command", "what", "how often", "median of what was found"], rows)


def _of(trials: list[Trial], holds: Callable[[Trial], bool]) -> str:
    return f"{sum(map(holds, trials))} of {len(trials)}"


def _effect(trials: list[Trial]) -> str:
    found = [trial.server["found"] for trial in trials]
    if not found:
        return "-"
    effect = median(one["effect"] - 1 for one in found)
    widths = median(one["interval"][1] - one["interval"][0] for one in found)
    return f"{effect:+.1%}, with an interval {widths:.1%} wide"


def _bracket(trials: list[Trial]) -> str:
    known = [found for found in map(verdicts.ends, trials) if not any(map(math.isnan, found))]
    if not known:
        return "-"
    return " to ".join(f"{median(one[end] for one in known):.1%}" for end in (0, 1)) + " of the capacity"
