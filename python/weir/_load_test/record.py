"""Record of a load: its line in the summary, and its section in the report of a failed test."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from weir._compare import Comparison
from weir._load_test import figures
from weir._load_test.saved_runs import shown
from weir._run import Run

__all__ = ["LoadRecord"]

_RUNS_FOR_A_VERDICT = 3
"""Least number of runs per side, as in `weir.compare`."""


@dataclass(frozen=True)
class LoadRecord:
    """Load of a test, in values that a worker of xdist can send.

    Attributes:
        test: Node ID of the test.
        load: Name of the load in it.
        folder: Folder of the saved runs.
        line: Figures of the summary: rate, 99th percentile, failures, verdict. Of several runs: means, and sums.
        change: Change against the last good runs.
        is_worse: Whether they are worse.
        has_too_few: Whether there were too few runs for a verdict of the comparison.
        untrusted: Reasons not to trust the runs, in order, without repetitions.
        notes: Problems with saved runs.
        section: Text for the report of a failed test.
    """

    test: str
    load: str
    folder: str
    line: tuple[str, ...]
    change: str
    is_worse: bool
    has_too_few: bool
    untrusted: tuple[str, ...]
    notes: tuple[str, ...]
    section: str

    @classmethod
    def of(cls, test: str, load: str, runs: Sequence[Run], folder: Path) -> LoadRecord:
        """Make the record of runs that are not compared."""
        rate = sum(run.rate_per_s.achieved for run in runs) / len(runs)
        p99s = [run.response_ms.p99 for run in runs if run.response_ms.p99 is not None]
        p99 = figures.milliseconds(sum(p99s) / len(p99s) if p99s else None)
        failed = sum(run.requests.failed for run in runs)
        line = (f"{figures.number(rate)}/s", f"p99 {p99}", f"{failed:,} failed")
        untrusted = tuple(dict.fromkeys(reason for run in runs for reason in run.trust.reasons))
        return cls(
            test=test,
            load=load,
            folder=str(folder),
            line=(*line, _verdict(runs)),
            change="no good run before",
            is_worse=False,
            has_too_few=False,
            untrusted=untrusted,
            notes=(),
            section="\n".join(_report(run, number, len(runs)) for number, run in enumerate(runs, 1)),
        )

    def compared(self, comparison: Comparison | str, good: Path) -> LoadRecord:
        """Add a comparison with the last good runs, or the reason why there is none."""
        if isinstance(comparison, str):
            return replace(self, change=f"not compared: {comparison}")
        text = f"A is the last good run ({shown(good)}), B is this one.\n{comparison}"
        runs = min(len(side.runs) for side in comparison.sides)
        return replace(
            self,
            change=figures.change(comparison),
            is_worse=comparison.is_worse,
            has_too_few=runs < _RUNS_FOR_A_VERDICT,
            section=f"{self.section}\n{text}",
        )

    def distrust(self) -> str:
        """Return the first reason not to trust the runs, and the number of all; empty without any."""
        count = len(self.untrusted)
        which = f" (1 of {count} reasons)" if count > 1 else ""
        return f"not trusted{which}: {self.untrusted[0]}" if count else ""

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> LoadRecord:
        """Make the record from plain data; tuples may have become lists."""
        values: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in data.items()}
        return cls(**values)


def _verdict(runs: Sequence[Run]) -> str:
    """Return what the runs are worth, in a few words."""
    objectives = [objective for run in runs for objective in run.slo]
    met = sum(objective.ok for objective in objectives)
    words = [f"{met} of {len(objectives)} met"] if objectives else []
    if any(run.interrupted for run in runs):
        words.append("interrupted")
    words.append("trusted" if all(run.trust.ok for run in runs) else "not trusted")
    return ", ".join(words)


def _report(run: Run, number: int, count: int) -> str:
    return f"run {number} of {count}\n{run}" if count > 1 else str(run)
