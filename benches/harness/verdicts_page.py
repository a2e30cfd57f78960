"""Page of the section on verdicts."""

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
Repeated results of `weir study` and `weir capacity` on real services with known properties. A study has the default
number of rounds, each with both variants restarted and loaded with {verdicts.CONNECTIONS} connections. The two equal
services are `weir serve httpbin`, limited by the CPU; of the other two, one responds after {verdicts.DELAY_MS:g} ms
with {verdicts.SLOTS} slots, the other after {SLOW_MS:g} ms. The known capacity is that of {verdicts.POOL} slots with
{verdicts.LEAST_MS:g} ms, and {verdicts.MORE_MS:g} ms more in each search after the first, with random arrivals and
`--slo "{verdicts.OBJECTIVE}"`. A load slightly above the capacity passes a step of {verdicts.STEP}, since its queue
grows slowly; therefore the lower bound is below the highest load that passed. The statistics are tested by simulations;
this page shows the accuracy with real processes.
"""


def write(section: Section) -> Iterator[str]:
    """Yield the parts of the page."""
    yield "# Verdicts: accuracy of reported differences and capacities"
    yield METHOD.strip()
    rows = []
    for case, what, holds in (
        (SAME, "a difference in any metric", verdicts.calls_a_difference),
        (SLOWED, "worse", verdicts.calls_it_worse),
    ):
        trials = section.trials(case, STUDY)
        rows.append([case, STUDY, what, _of(trials, holds), _effect(trials)])
    trials = section.trials(KNOWN, CAPACITY)
    rows.append([KNOWN, CAPACITY, "both bounds within 5%", _of(trials, verdicts.is_close), _bracket(trials)])
    rows.append([KNOWN, CAPACITY, "between the bounds", _of(trials, verdicts.brackets), ""])
    yield table(["case", "command", "result", "trials", "median result"], rows)


def _of(trials: list[Trial], holds: Callable[[Trial], bool]) -> str:
    return f"{sum(map(holds, trials))} of {len(trials)}"


def _effect(trials: list[Trial]) -> str:
    found = [trial.server["found"] for trial in trials]
    if not found:
        return "-"
    effect = median(one["effect"] - 1 for one in found)
    widths = median(one["ci"][1] - one["ci"][0] for one in found)
    return f"{effect:+.1%}, interval {widths:.1%} wide"


def _bracket(trials: list[Trial]) -> str:
    known = [found for found in map(verdicts.ends, trials) if not any(map(math.isnan, found))]
    if not known:
        return "-"
    return " to ".join(f"{median(one[end] for one in known):.1%}" for end in (0, 1)) + " of the capacity"
