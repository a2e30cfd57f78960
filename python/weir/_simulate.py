"""`weir.simulate`: what protection from overload does, in virtual time.

Each class here is one object of `docs/simulation.schema.json`, field by field; a test holds the two and Rust's own form
of them together. Names carry their units; shares are in [0, 1].
"""

import json
from dataclasses import dataclass, field
from typing import Any, Literal

from weir import _weir
from weir._flags import Flag, arguments
from weir._run import _read

__all__ = ["Duel", "Figures", "Moment", "Simulation", "SimulationRun", "Standing", "simulate"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What came of a stretch of a run."""

    name: str
    """The stretch in a word."""
    from_s: float
    """Its first instant."""
    to_s: float
    """Its end."""
    offered_per_s: float
    """First tries of callers."""
    tries_per_s: float
    """All tries of callers."""
    capacity_per_s: float
    """What the upstream can answer, on average."""
    goodput_per_s: float
    """Answers in time."""
    goodput: float
    """Answers in time as a share of what could be: of the calls, or of the capacity where that is less."""
    p50_ms: float
    """Half of the accepted calls have their answer in so much time, from the caller's try on."""
    p99_ms: float
    """The same for 99 % of them; a call that meets its deadline at the upstream counts with that."""
    p99_stretch: float
    """The same as a multiple of the p99 of calls that nobody is in the way of."""
    refused: float
    """Share of the tries that the gate has refused."""
    failed: float
    """Share of the tries that the upstream has refused."""
    given_up: float
    """Share of the tries without any answer at their deadline."""
    refused_wait_p99_ms: float
    """How long 99 % of those wait at most that the gate refuses."""
    limit: float | None
    """The mean limit over all gates; none without one."""
    in_flight: float
    """Calls at the upstream, on average."""
    best_in_flight: float
    """With so many it gives all it can, and nobody waits there."""
    overload: bool
    """Whether all of it is overload of an upstream that stays as it is: only then there is something to settle to."""
    settle_s: float | None
    """When the calls at the upstream are within 15 % of the best number, and stay there for 5 s; none if never."""
    drift: float | None
    """The limit at its end against that of its beginning, less 1; of overload from a minute on."""
    served: tuple[float | None, ...]
    """Of those that came, the share with an answer in time: low, normal, high and critical calls."""
    good: float | None
    """The share of the first kind's calls with a response in time; None where all callers are of one kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """A step of a run."""

    t_s: float
    """Its end."""
    offered_per_s: float
    """First tries of callers."""
    tries_per_s: float
    """All tries of callers."""
    capacity_per_s: float
    """What the upstream can answer."""
    goodput_per_s: float
    """Answers in time."""
    refused_per_s: float
    """Refusals by the gates."""
    limit: float | None
    """The limit of all gates, at its end; none without one."""
    in_flight: float
    """Calls at the upstream, on average."""
    best_in_flight: float
    """The best number of them."""
    queue: float
    """Calls that wait in gates, on average."""
    p99_ms: float | None
    """Of the accepted calls that ended in it; none if there are none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationRun:
    """A scenario with a limiter."""

    scenario: str
    """The scenario's name; ``own`` for figures of one's own."""
    limit: str
    """The limiter's name."""
    seed: int
    """Repeats it."""
    about: Literal["goodput", "critical"]
    """What the scenario is about: answers in time to all calls, or to critical ones."""
    headline: float
    """The share of those that could be, of all such calls."""
    scored: Figures
    """All of it but the warm-up."""
    phases: tuple[Figures, ...]
    """The scenario's stretches."""
    series: tuple[Moment, ...]
    """It over time, warm-up included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How a limiter stands in a scenario."""

    scenario: str
    """The scenario."""
    limit: str
    """The limiter."""
    behind: tuple[str, ...]
    """Those that are ahead of it."""
    last: bool
    """Whether all others are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Duel:
    """The first limiter beside another one, over all scenarios."""

    limit: str
    """The first."""
    against: str
    """The other one."""
    ahead: int
    """In so many scenarios the first is ahead."""
    even: int
    """In so many neither is."""
    behind: int
    """In so many the other one is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulation:
    """Runs in virtual time, beside each other. It prints as a report."""

    weir: str
    """The version of weir that made them."""
    schema: int
    """The version of this form."""
    runs: tuple[SimulationRun, ...]
    """Each scenario with each limiter."""
    standings: tuple[Standing, ...]
    """Each run among those of its scenario."""
    duels: tuple[Duel, ...]
    """The first limiter beside each other one."""
    _texts: tuple[str, str] = field(compare=False)

    def run(self, scenario: str | None = None, limit: str | None = None) -> SimulationRun:
        """Return the first run of this scenario and limiter; of any, where that is left out.

        Raises:
            KeyError: There is none.
        """
        for run in self.runs:
            if scenario in (None, run.scenario) and limit in (None, run.limit):
                return run
        raise KeyError((scenario, limit))

    def to_json(self) -> str:
        """Return all of it as JSON (`docs/simulation.schema.json`)."""
        return self._texts[0]

    def to_dict(self) -> dict[str, Any]:
        """Return the object of `to_json` as a new dictionary."""
        data: dict[str, Any] = json.loads(self.to_json())
        return data

    def __str__(self) -> str:
        """Return the text report."""
        return self._texts[1]

    def __repr__(self) -> str:
        """Say in one line what was run."""
        shown = ", ".join(f"{run.scenario} with {run.limit}: {run.headline:.1%}" for run in self.runs[:3])
        return f"<weir.Simulation {shown}{', ...' if len(self.runs) > 3 else ''}>"


def simulate(*, seed: int | None = None, **flags: Flag) -> Simulation:
    """See what protection from overload does: callers, gates and an upstream in virtual time.

    Args:
        seed: Repeats all dice.
        flags: The flags of ``weir simulate``, with ``_`` for ``-``: ``scenario="flash-crowd"``,
            ``limit=["auto", "static:50"]``; or figures of your own: ``slots=50``, ``service="20ms..90ms"``,
            ``load="0.5/30s,10/30s"``, ``deadline="1s"``. ``weir simulate --help`` has them all.

    Without figures of your own and without ``scenario`` all scenarios run; that takes some seconds.

    Raises:
        UsageError: There is no such flag, or a value makes no sense.

    >>> run = weir.simulate(scenario="flash-crowd").run()
    >>> run.scored.p99_stretch < 4
    True
    """
    args = arguments({"seed": seed, **flags})
    texts = _weir.simulate(args)
    return _read(Simulation, json.loads(texts[0]), _texts=texts)
