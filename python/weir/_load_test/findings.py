"""Findings about the runs of a load test that fail it, as lines for its report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from weir._compare import Comparison
from weir._load_test import figures
from weir._load_test.options import LoadTestOptions
from weir._load_test.saved_runs import shown
from weir._run import Run

__all__ = ["problems"]


def problems(
    runs: Sequence[Run], options: LoadTestOptions, comparison: Comparison | str | None, folder: Path
) -> list[str]:
    """List what fails the test: lines of a message that begins with the gist, or nothing."""
    lines = [line for number, run in enumerate(runs, 1) for line in _of_run(run, options, number, len(runs))]
    if options.compare == "fail" and isinstance(comparison, Comparison) and comparison.is_worse:
        lines += [f"worse than the last good run: {figures.changes(comparison, with_figures=True)}"]
    if not lines:
        return []
    return [*lines, f"saved: {shown(folder)}"]


def _of_run(run: Run, options: LoadTestOptions, number: int, count: int) -> Iterator[str]:
    missed = sum(not objective.ok for objective in run.slo)
    no_success = run.requests.ok == 0
    untrusted = not run.trust.ok and options.untrusted == "fail"
    if not (missed or no_success or untrusted):
        return
    which = f" (run {number} of {count})" if count > 1 else ""
    gist = [f"{missed} of {len(run.slo)} objectives missed"] * bool(missed)
    gist += [f"not one of {run.requests.total:,} requests succeeded"] * no_success
    gist += ["the run is not trusted"] * untrusted
    yield f"{', '.join(gist)}{which}"
    width = max((len(objective.objective) for objective in run.slo), default=0)
    for objective in run.slo:
        yield f"  {'met   ' if objective.ok else 'missed'}  {objective.objective:<{width}}  {objective.measured}"
    yield f"  {_summary(run)}"
    if not run.trust.ok:
        yield from (f"  not trusted: {reason}" for reason in run.trust.reasons)


def _summary(run: Run) -> str:
    """Return the run in a line."""
    failures = ", ".join(f"{count:,} x {kind}" for kind, count in run.failures.items() if count)
    return (
        f"{run.target.method} {run.target.url}: {run.requests.total:,} requests in {run.duration_s:.1f} s, "
        f"{figures.number(run.rate_per_s.achieved)}/s, p99 {figures.milliseconds(run.response_ms.p99)}, "
        f"{run.requests.failed:,} failed{f' ({failures})' if failures else ''}"
    )
