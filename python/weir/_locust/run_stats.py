"""`environment.stats`: the counts of a run as locustfiles read them at its end."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

__all__ = ["RunStats", "StatsEntry", "StatsError", "StepMethods"]

_RECENT_S = 10
"""Time that the current rates look back."""


class StatsEntry:
    """Numbers of one name and method, or of all; they are known at the end of the run. Times are in milliseconds."""

    def __init__(self, stats: RunStats | None = None, name: str = "Aggregated", method: str = "", **_: Any) -> None:
        """Begin with nothing."""
        self.stats = stats
        self.name = name
        self.method = method
        self.num_requests = 0
        self.num_none_requests = 0
        self.num_failures = 0
        self.avg_response_time = 0.0
        self.median_response_time = 0.0
        self.min_response_time: float | None = None
        self.max_response_time = 0.0
        self.total_response_time = 0.0
        self.total_content_length = 0
        self.total_rps = 0.0
        self.total_fail_per_sec = 0.0
        self.current_rps = 0.0
        self.current_fail_per_sec = 0.0
        self.start_time = 0.0
        self.last_request_timestamp: float | None = None
        self._steps: list[int] = []
        self._handle: Any = None

    @property
    def fail_ratio(self) -> float:
        """Failures among the requests, from 0 to 1."""
        return self.num_failures / self.num_requests if self.num_requests else 0.0

    @property
    def avg_content_length(self) -> float:
        """Mean number of bytes of a response, with its head."""
        return self.total_content_length / self.num_requests if self.num_requests else 0.0

    def get_response_time_percentile(self, percent: float) -> float:
        """Return a percentile, from 0 to 1: of all responses, and for one name of its successes."""
        # Locust has 0 where nothing was measured.
        return 0.0 if self._handle is None else self._handle.percentile_of_steps(percent * 100, self._steps) or 0.0

    def get_current_response_time_percentile(self, percent: float) -> float:
        """Return the same percentile: the run is over."""
        return self.get_response_time_percentile(percent)

    def to_dict(self, escape_string_values: bool = False) -> dict[str, Any]:
        """Return the numbers by name."""
        del escape_string_values
        names = (
            "method name num_requests num_failures min_response_time max_response_time current_rps "
            "current_fail_per_sec avg_response_time median_response_time total_rps total_fail_per_sec "
            "avg_content_length"
        )
        found = {name: getattr(self, name) for name in names.split()}
        for percent in (0.95, 0.99):
            found[f"response_time_percentile_{percent}"] = self.get_response_time_percentile(percent)
        return found

    serialize = get_stripped_report = to_dict

    def _take(self, parts: Sequence[Any], run: Any, steps: list[int]) -> None:
        """Take over the numbers of a run, or of some of its steps."""
        counts = [_counts_of(part) for part in parts]
        self.num_requests = sum(total for total, _ in counts)
        self.num_failures = sum(failed for _, failed in counts)
        times = [
            (part_times, count)
            for part, (total, failed) in zip(parts, counts, strict=True)
            for part_times, count in ((part.response_ms, total - failed), (part.failed_ms, failed))
            if count and part_times.mean is not None
        ]
        self.total_response_time = sum(part.mean * count for part, count in times)
        if times:
            self.avg_response_time = self.total_response_time / self.num_requests
            self.min_response_time = min(part.min for part, _ in times)
            self.max_response_time = max(part.max for part, _ in times)
        self._handle, self._steps = run._handle, steps
        self.median_response_time = self.get_response_time_percentile(0.5)
        if run.duration_s:
            self.total_rps = self.num_requests / run.duration_s
            self.total_fail_per_sec = self.num_failures / run.duration_s
        self.current_rps, self.current_fail_per_sec = _recent([part.series for part in parts], run)
        self.start_time = run.manifest.started_unix_s + run.warmup_s
        self.last_request_timestamp = self.start_time + run.duration_s


class StatsError:
    """Failures of one kind.

    Attributes:
        method: Method.
        name: Name of the requests.
        error: Kind of the failures.
        occurrences: Number of them.
    """

    def __init__(self, method: str, name: str, error: str, occurrences: int) -> None:
        """Count failures."""
        self.method, self.name, self.error, self.occurrences = method, name, error, occurrences

    def to_name(self) -> str:
        """Return the failures as a line."""
        return f"{self.method} {self.name}: {self.error}"

    def to_dict(self) -> dict[str, Any]:
        """Return the failures by name."""
        return dict(vars(self))


class _Entries(dict[tuple[str, str], StatsEntry]):
    def __missing__(self, key: tuple[str, str]) -> StatsEntry:
        """Return the entry that several methods share, or an empty one."""
        name, method = key
        for (other, methods), entry in self.items():
            if other == name and method in methods.split("|"):
                return entry
        return self.setdefault(key, StatsEntry(None, name, method))


class StepMethods:
    """Names and methods of the requests that steps count."""

    def __init__(self) -> None:
        """Begin without steps."""
        self._found: dict[tuple[str, str], tuple[str, list[str]]] = {}

    def add(self, scenario: str, step: str, name: str, methods: Iterable[str]) -> None:
        """Add requests of a step."""
        known = self._found.setdefault((scenario, step), (name, []))[1]
        known += [method for method in methods if method not in known]

    def of(self, scenario: str, step: str) -> tuple[str, str]:
        """Return the name and the method of a step; several methods have bars between them."""
        name, methods = self._found.get((scenario, step), (step, []))
        return name, "|".join(methods)

    def to_json(self) -> str:
        """Return the steps as text, for another process."""
        return json.dumps([(*key, *found) for key, found in self._found.items()])

    def add_json(self, text: str) -> None:
        """Add the steps of another process."""
        for found in json.loads(text):
            self.add(*found)


class RunStats:
    """Statistics of a run: `total` and `entries`, which are known at its end."""

    def __init__(self, **_: Any) -> None:
        """Begin with nothing."""
        self.total = StatsEntry(self)
        self.entries: dict[tuple[str, str], StatsEntry] = _Entries()
        self.errors: dict[str, StatsError] = {}
        self.history: list[Any] = []

    @property
    def num_requests(self) -> int:
        """Number of requests."""
        return self.total.num_requests

    @property
    def num_failures(self) -> int:
        """Number of failures."""
        return self.total.num_failures

    @property
    def start_time(self) -> float:
        """Start of the run, in seconds since 1970."""
        return self.total.start_time

    @property
    def last_request_timestamp(self) -> float | None:
        """End of the run, in seconds since 1970."""
        return self.total.last_request_timestamp

    def get(self, name: str, method: str) -> StatsEntry:
        """Return the numbers of a name and method."""
        return self.entries[name, method]

    def serialize_stats(self) -> list[dict[str, Any]]:
        """Return the numbers of all names."""
        return [entry.to_dict() for entry in self.entries.values() if entry.num_requests]

    def serialize_errors(self) -> dict[str, dict[str, Any]]:
        """Return the failures."""
        return {name: error.to_dict() for name, error in self.errors.items()}

    def clear_all(self) -> None:
        """Do nothing: weir counts on."""

    reset_all = clear_all

    def take(self, run: Any, methods: StepMethods) -> None:
        """Take over the numbers of a result."""
        self.total._take([run], run, [])
        self.total.total_content_length = sum(step.bytes_in for step in run.steps)
        found: dict[tuple[str, str], list[int]] = {}
        for index, step in enumerate(run.steps):
            found.setdefault(methods.of(step.scenario, step.name), []).append(index)
        for (name, method), indices in found.items():
            entry = self.entries[name, method] = StatsEntry(self, name, method)
            steps = [run.steps[index] for index in indices]
            entry._take(steps, run, indices)
            entry.total_content_length = sum(step.bytes_in for step in steps)
            for kind in dict.fromkeys(kind for step in steps for kind in step.failures):
                count = sum(step.failures.get(kind, 0) for step in steps)
                error = StatsError(method, name, kind, count)
                self.errors[error.to_name()] = error


def _counts_of(part: Any) -> tuple[int, int]:
    """Number of requests and failures of a run or a step."""
    if isinstance(part.requests, int):
        return part.requests, part.failed
    return part.requests.total, part.requests.failed


def _recent(series: Sequence[Any], run: Any) -> tuple[float, float]:
    """Rates of requests and failures at the end of a run."""
    end_s = run.warmup_s + run.duration_s
    recent = [one for intervals in series for one in intervals if one.t_s + one.width_s > end_s - _RECENT_S]
    if not recent:
        return 0.0, 0.0
    length_s = end_s - min(one.t_s for one in recent)
    failed = sum(one.failed for one in recent)
    return (sum(one.ok for one in recent) + failed) / length_s, failed / length_s
