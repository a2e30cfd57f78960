"""Trials of a section: saved as JSON, read back, and summarized by medians."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from harness.trial import Bench, Trial

Value = Callable[[Trial], float | None]

#: Mark of a contender with runs that weir itself does not trust.
MARK = "†"


@dataclass(frozen=True)
class Section:
    """Trials of a section, with machine, versions and plan."""

    name: str
    machine: dict[str, str]
    versions: dict[str, str]
    missing: list[str]
    plan: dict[str, Any]
    every: list[Trial]

    def cases(self) -> list[str]:
        """Return the cases in the order of their first trial."""
        return list(dict.fromkeys(trial.case for trial in self.every))

    def contenders(self, case: str) -> list[str]:
        """Return the contenders with a valid trial."""
        good = (trial for trial in self.every if trial.case == case and not trial.error)
        return list(dict.fromkeys(trial.contender for trial in good))

    def trials(self, case: str, contender: str) -> list[Trial]:
        """Return the valid trials."""
        return [
            trial for trial in self.every if trial.case == case and trial.contender == contender and not trial.error
        ]

    def errors(self) -> list[str]:
        """Return the distinct errors of trials, a line each."""
        lines = (f"{t.contender} ({t.case}): {t.error}" for t in self.every if t.error)
        return list(dict.fromkeys(lines))

    def doubts(self) -> list[str]:
        """Return a line for each contender with untrusted runs: their number, and the first reason."""
        lines = []
        for case, contender in dict.fromkeys((trial.case, trial.contender) for trial in self.every):
            trials = self.trials(case, contender)
            reasons = [reason for trial in trials for reason in _distrust(trial)]
            if reasons:
                count = sum(bool(_distrust(trial)) for trial in trials)
                lines.append(f"{contender} ({case}), {count} of {len(trials)} runs: {reasons[0]}")
        return lines

    def marked(self, case: str, contender: str) -> str:
        """Return the contender's name, with a mark if it has untrusted runs."""
        doubted = any(_distrust(trial) for trial in self.trials(case, contender))
        return f"{contender} {MARK}" if doubted else contender

    def commands(self) -> list[str]:
        """Return the command line of the first run of each contender."""
        first = {(trial.case, trial.contender): trial.command for trial in reversed(self.every)}
        return sorted(set(first.values()))

    def median(self, case: str, contender: str, value: Value) -> float | None:
        """Compute the median over the rounds that have the value."""
        values = [value(trial) for trial in self.trials(case, contender)]
        known = [number for number in values if number is not None]
        return median(known) if known else None

    def spread(self, case: str, contender: str, value: Value, form: str) -> str:
        """Format the minimum and maximum of the rounds."""
        known = [number for number in map(value, self.trials(case, contender)) if number is not None]
        return f"{form.format(min(known))} to {form.format(max(known))}" if known else "-"

    def ratio(self, case: str, contender: str, base: str, value: Value) -> float | None:
        """Compute the median of the ratios within each round."""
        ratios = [mine / other for mine, other in self._beside(case, contender, base, value) if other]
        return median(ratios) if ratios else None

    def difference(self, case: str, contender: str, base: str, value: Value) -> float | None:
        """Compute the median of the differences within each round."""
        found = [mine - other for mine, other in self._beside(case, contender, base, value)]
        return median(found) if found else None

    def _beside(self, case: str, contender: str, base: str, value: Value) -> Iterator[tuple[float, float]]:
        others = {trial.round: value(trial) for trial in self.trials(case, base)}
        for trial in self.trials(case, contender):
            mine, other = value(trial), others.get(trial.round)
            if mine is not None and other is not None:
                yield mine, other


def _distrust(trial: Trial) -> list[str]:
    """Return the reasons why the generator does not trust its own run."""
    if trial.report.get("trusted") is not False:
        return []
    return [str(reason) for reason in trial.report.get("reasons") or ["no reason given"]]


def save(folder: Path, name: str, bench: Bench, machine: dict[str, str], trials: list[Trial]) -> None:
    """Write a section; an older one of the same name is replaced."""
    programs = bench.programs
    document = {
        "section": name,
        "machine": machine,
        "versions": programs.versions,
        "missing": programs.missing(),
        "plan": asdict(bench.plan),
        "trials": [trial.to_dict() for trial in trials],
    }
    (folder / f"{name}.json").write_text(json.dumps(document, indent=1) + "\n")


def load(folder: Path, names: tuple[str, ...]) -> dict[str, Section]:
    """Read the sections that are saved in this folder."""
    return {name: _read(folder / f"{name}.json") for name in names if _there(folder, name)}


def _there(folder: Path, name: str) -> bool:
    return (folder / f"{name}.json").exists()


def _read(path: Path) -> Section:
    document = json.loads(path.read_text())
    return Section(
        name=document["section"],
        machine=document["machine"],
        versions=document["versions"],
        missing=document["missing"],
        plan=document["plan"],
        every=[Trial(**trial) for trial in document["trials"]],
    )


def cpu(trial: Trial) -> float | None:
    """Return the generator's CPU time per request, in us."""
    return trial.cpu_us_per_request


def rate(trial: Trial) -> float | None:
    """Return the requests per second, as counted by the server."""
    return trial.rate_per_s


def memory(trial: Trial) -> float | None:
    """Return the generator's peak memory, in MB."""
    return trial.max_rss_mb


def percentile(name: str) -> Value:
    """Select a percentile reported by the generator, in ms."""

    def value(trial: Trial) -> float | None:
        found = trial.report.get("percentiles_ms", {}).get(name)
        return None if found is None else float(found)

    return value


def said(name: str) -> Value:
    """Select another number reported by the generator."""

    def value(trial: Trial) -> float | None:
        found = trial.report.get(name)
        return None if found is None else float(found)

    return value


def noted(*path: str) -> Value:
    """Select a number recorded at the server."""

    def value(trial: Trial) -> float | None:
        found: Any = trial.server
        for key in path:
            found = found.get(key) if isinstance(found, dict) else None
        return None if found is None else float(found)

    return value


def little(trial: Trial) -> float | None:
    """Compute the reported mean times the reported rate, divided by connections; 1 if consistent."""
    mean_ms, rate_per_s = said("mean_ms")(trial), said("rate_per_s")(trial)
    if mean_ms is None or rate_per_s is None or not trial.connections:
        return None
    return mean_ms / 1000 * rate_per_s / trial.connections
