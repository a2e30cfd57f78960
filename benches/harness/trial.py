"""Trials: runs of a generator at a target, in interleaved rounds."""

from __future__ import annotations

import random
import re
import shlex
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from harness.generators import Generator, Load, Report, catalogue
from harness.plan import Plan
from harness.process import Finished, run
from harness.programs import Programs
from harness.servers import Server

Item = TypeVar("Item")


@dataclass
class Trial:
    """Result of a run; requests are counted by the server, costs by the kernel."""

    case: str
    contender: str
    round: int
    command: str = ""
    asked_s: int = 0
    connections: int | None = None
    requests: int = 0
    user_us_per_request: float = 0.0
    sys_us_per_request: float = 0.0
    max_rss_mb: float = 0.0
    error: str = ""  # reason why the run does not count
    report: dict[str, Any] = field(default_factory=dict)  # report of the generator
    server: dict[str, Any] = field(default_factory=dict)  # measurements at the server

    @property
    def cpu_us_per_request(self) -> float:
        """CPU time of the generator per request counted by the server, in us."""
        return self.user_us_per_request + self.sys_us_per_request

    @property
    def rate_per_s(self) -> float:
        """Requests counted by the server per second of the requested duration."""
        return self.requests / self.asked_s if self.asked_s else 0.0

    def say(self, form: str) -> None:
        """Print a line on standard error: why the run does not count, or its figures in this form.

        Names in the form are those of `server`; `times` are the generator's percentiles in ms, `trial` is the trial.
        """
        times: dict[str, float] = defaultdict(float, self.report.get("percentiles_ms", {}))
        figures = defaultdict(lambda: None, self.server, trial=self, times=times)
        outcome = self.error or form.format_map(figures)
        print(f"{self.case:<44} {self.contender:<30.30} {self.round}  {outcome}", file=sys.stderr)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as saved."""
        return asdict(self)


@dataclass(frozen=True)
class Bench:
    """Environment of all sections: programs, sizes and cores."""

    programs: Programs
    plan: Plan
    server_core: int
    generator_core: int

    def generators(self, names: Iterable[str]) -> list[Generator]:
        """Return the available generators of these names."""
        every = catalogue(self.programs)
        return [every[name] for name in names if name in every]

    def measure(
        self,
        generator: Generator,
        server: Server,
        load: Load,
        *,
        case: str,
        round_: int = 0,
        label: str = "",
    ) -> Trial:
        """Run the generator once and count at the server; URL and folder of `load` are filled in."""
        contender = label or generator.name
        with tempfile.TemporaryDirectory(prefix="weir-bench-") as scratch:
            load = replace(load, url=server.url, scratch=Path(scratch))
            command = generator.command(load)
            server.reset()
            before = server.requests()
            finished = run(
                command,
                core=self.generator_core,
                cost=self.programs["cost"],
                seconds=load.seconds,
            )
            requests = server.requests() - before - server.own_requests
            report, error = _read(generator, finished, load)
        trial = Trial(
            case=case,
            contender=contender,
            round=round_,
            command=shown(command),
            asked_s=load.seconds,
            connections=load.connections,
            requests=requests,
            user_us_per_request=finished.user_s * 1e6 / max(requests, 1),
            sys_us_per_request=finished.sys_s * 1e6 / max(requests, 1),
            max_rss_mb=finished.max_rss_mb,
            error=error or ("" if requests else "no request arrived"),
            report=report.to_dict(),
        )
        trial.say("{trial.rate_per_s:>10,.0f}/s {trial.cpu_us_per_request:7.2f} us/request {trial.max_rss_mb:7.1f} MB")
        return trial


def _read(generator: Generator, finished: Finished, load: Load) -> tuple[Report, str]:
    """Read the generator's report, or return the error in a line."""
    if finished.status:
        lines = (finished.stderr.strip() or finished.stdout.strip()).splitlines()
        return Report(), f"exit {finished.status}: {lines[-1] if lines else 'no message'}"
    try:
        return generator.read(finished, load), ""
    except (ValueError, KeyError, TypeError, IndexError, OSError) as error:
        return Report(), f"invalid report: {type(error).__name__}: {error}"


def rounds(items: Iterable[Item], count: int, seed: int) -> Iterator[tuple[int, Item]]:
    """Yield every item once per round, in a new random order each round."""
    shuffle: Callable[[list[Item]], None] = random.Random(seed).shuffle
    for number in range(count):
        order = list(items)
        shuffle(order)
        for item in order:
            yield number, item


def shown(command: list[str]) -> str:
    """Format a command line for the page, without folders and temporary ports."""
    line = shlex.join(Path(word).name if word.startswith("/") else word for word in command)
    return re.sub(r"(127\.0\.0\.1:|--port )\d+", r"\1PORT", line)
