"""`weir.simulate`: overload protection in virtual time.

Each class is an object of `docs/schema/simulation.schema.json`, field by field; a test compares both with Rust.
Names carry their units; fractions are in [0, 1].
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from weir import _weir
from weir._run import _read

__all__ = ["Metrics", "Pairing", "Rank", "Sample", "Simulation", "SimulationRun", "simulate"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Metrics:
    """Metrics of a phase of a run.

    Attributes:
        name: Name of the phase.
        start_s: Start of the phase, in seconds.
        end_s: End, in seconds.
        offered_per_s: First attempts of callers, per second.
        attempts_per_s: All attempts of callers, per second.
        capacity_per_s: Mean capacity of the upstream, per second.
        goodput_per_s: Responses in time, per second.
        goodput: Responses in time as a fraction of the calls, or of the capacity where that is less; None without
            calls.
        p50_ms: Median response time of accepted calls, from the caller's attempt, in milliseconds; None without any.
        p99_ms: 99th percentile of response times of accepted calls, in milliseconds; a call that reaches its deadline
            at the upstream counts with that; None without any.
        p99_ratio: p99 divided by the unloaded p99; None without accepted calls.
        rejected: Fraction of attempts that the gateway rejected; None without attempts.
        upstream_rejected: Fraction of attempts that the upstream rejected; None without attempts.
        timed_out: Fraction of attempts without a response at their deadline; None without attempts.
        rejected_wait_p99_ms: 99th percentile of the wait of rejected calls, in milliseconds; None without any.
        limit: Mean limit over all gateways; None without one.
        in_flight: Calls at the upstream, on average.
        optimal_in_flight: Optimal number of calls at the upstream: full throughput without a queue.
        overload: Whether the phase is constant overload of an unchanged upstream: only then the limit can settle.
        settle_s: Time until the calls at the upstream are within 15% of the optimum and stay there for 2 s, in
            seconds; None if never.
        drift: Limit at the end divided by that at the beginning, less 1; of overload of a minute and more.
        goodput_by_priority: Fraction of calls with a response in time, by priority: low, normal, high, critical.
        first_kind_goodput: Fraction of the first kind's calls with a response in time; None with one kind of callers.
    """

    name: str
    start_s: float
    end_s: float
    offered_per_s: float
    attempts_per_s: float
    capacity_per_s: float
    goodput_per_s: float
    goodput: float | None
    p50_ms: float | None
    p99_ms: float | None
    p99_ratio: float | None
    rejected: float | None
    upstream_rejected: float | None
    timed_out: float | None
    rejected_wait_p99_ms: float | None
    limit: float | None
    in_flight: float
    optimal_in_flight: float
    overload: bool
    settle_s: float | None
    drift: float | None
    goodput_by_priority: tuple[float | None, ...]
    first_kind_goodput: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A sample of a run.

    Attributes:
        t_s: End, in seconds.
        offered_per_s: First attempts of callers, per second.
        attempts_per_s: All attempts of callers, per second.
        capacity_per_s: Capacity of the upstream, per second.
        goodput_per_s: Responses in time, per second.
        rejected_per_s: Rejections by the gateways, per second.
        limit: Sum of the gateways' limits at the end of the sample; None without one.
        in_flight: Calls at the upstream, on average.
        optimal_in_flight: Optimal number of calls at the upstream.
        queue: Mean number of queued calls in the gateways.
        p99_ms: 99th percentile of accepted calls that ended in the sample, in milliseconds; None without any.
    """

    t_s: float
    offered_per_s: float
    attempts_per_s: float
    capacity_per_s: float
    goodput_per_s: float
    rejected_per_s: float
    limit: float | None
    in_flight: float
    optimal_in_flight: float
    queue: float
    p99_ms: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationRun:
    """A scenario with a limiter.

    Attributes:
        scenario: Name of the scenario.
        limiter: Name of the limiter.
        seed: Seed of the run.
        headline_metric: Headline metric of the scenario: responses in time to all calls, or to critical ones.
        headline: Value of the headline metric, as a fraction of what is possible; None without calls.
        scored: Metrics of the run without the warm-up.
        phases: Metrics of each phase.
        series: Time series, warm-up included.
    """

    scenario: str
    limiter: str
    seed: int
    headline_metric: Literal["goodput", "critical"]
    headline: float | None
    scored: Metrics
    phases: tuple[Metrics, ...]
    series: tuple[Sample, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rank:
    """Rank of a limiter in a scenario.

    Attributes:
        scenario: Name of the scenario.
        limiter: Name of the limiter.
        beaten_by: Limiters that win against it.
        last: Whether all others win against it.
    """

    scenario: str
    limiter: str
    beaten_by: tuple[str, ...]
    last: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairing:
    """First limiter against another one, over all scenarios.

    Attributes:
        limiter: Name of the first limiter.
        other: Name of the other limiter.
        wins: Number of scenarios that the first one wins.
        ties: Number of ties.
        losses: Number of scenarios that the other one wins.
    """

    limiter: str
    other: str
    wins: int
    ties: int
    losses: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulation:
    """Simulated runs, with the ranking of their limiters; prints as a text report.

    Attributes:
        weir: Version of weir that wrote it.
        schema: Version of this format; it grows when a field changes its meaning or is removed.
        runs: Runs: each scenario with each limiter.
        ranking: Rank of each run within its scenario.
        pairings: First limiter against each other one.
    """

    weir: str
    schema: int
    runs: tuple[SimulationRun, ...]
    ranking: tuple[Rank, ...]
    pairings: tuple[Pairing, ...]
    _texts: tuple[str, str] = field(compare=False)

    def run(self, scenario: str | None = None, limiter: str | None = None) -> SimulationRun:
        """Find a run.

        Args:
            scenario: Name of the scenario; by default any.
            limiter: Name of the limiter; by default any.

        Returns:
            The first run that matches.

        Raises:
            KeyError: No run matches.
        """
        for run in self.runs:
            if scenario in (None, run.scenario) and limiter in (None, run.limiter):
                return run
        raise KeyError((scenario, limiter))

    def to_json(self) -> str:
        """Return the simulation as JSON (`docs/schema/simulation.schema.json`)."""
        return self._texts[0]

    def to_dict(self) -> dict[str, Any]:
        """Return the object of `to_json` as a new dictionary."""
        data: dict[str, Any] = json.loads(self.to_json())
        return data

    def __str__(self) -> str:
        """Return the text report."""
        return self._texts[1]

    def __repr__(self) -> str:
        """Return scenarios, limiters and headline metrics in one line."""
        shown = ", ".join(f"{run.scenario} with {run.limiter}: {_percent(run.headline)}" for run in self.runs[:3])
        return f"<weir.Simulation {shown}{', ...' if len(self.runs) > 3 else ''}>"


def _percent(fraction: float | None) -> str:
    return "-" if fraction is None else f"{fraction:.1%}"


def simulate(
    *,
    scenario: str | Sequence[str] = "all",
    limiter: str | Sequence[str] = "auto",
    seed: int | None = None,
) -> Simulation:
    """Simulate overload protection: callers, gateways and an upstream in virtual time.

    Args:
        scenario: Scenario, such as ``"flash-crowd"``, or several; ``"all"`` takes some seconds.
        limiter: Limiter, or several: ``"auto"`` (weir's), ``"static"``, ``"static:50"``, ``"aimd"``, ``"vegas"``,
            ``"gradient2"``, ``"envoy"``, ``"codel"``, ``"none"``; or ``"all"``.
        seed: Seed of all random choices; by default that of each scenario.

    Returns:
        The runs, and the ranking of their limiters.

    Raises:
        UsageError: Unknown scenario or limiter.

    >>> run = weir.simulate(scenario="flash-crowd").run()
    >>> run.scored.p99_ratio < 4
    True
    """
    texts = _weir.simulate(_names(scenario), _names(limiter), seed)
    return _read(Simulation, json.loads(texts[0]), _texts=texts)


def _names(given: str | Sequence[str]) -> list[str]:
    return [given] if isinstance(given, str) else list(given)
