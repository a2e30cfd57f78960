"""Agents: whether several of them, on one core, make the load of one at its cost, and report what one would."""

from __future__ import annotations

import json
from pathlib import Path

from harness.generators import Generator, Load, Report, read_weir, weir
from harness.process import Finished
from harness.servers import lean
from harness.trial import Bench, Trial, rounds

CONNECTIONS = 100
RATE = 2_000
DELAY = "uniform:10ms-50ms"
COUNTS = (1, 2, 4)
COST = "closed loop"
TRUTH = "delay uniform 10-50 ms"
ALONE = "weir"


def label(count: int) -> str:
    """The name in the tables."""
    return f"{count} agent{'' if count == 1 else 's'}"


def measure(bench: Bench) -> list[Trial]:
    """Interleaved rounds at full speed, then one run each against delays that the server knows."""
    contenders = [*bench.generators([ALONE]), *(generator for count in COUNTS for generator in _agents(bench, count))]
    # As long as the other: an agent's start costs as much as thousands of requests.
    full_speed = Load("", bench.plan.delay_s, Path(), connections=CONNECTIONS)
    even = Load("", bench.plan.delay_s, Path(), connections=CONNECTIONS, rate_per_s=RATE)
    trials = []
    with lean(bench.programs["lean"], bench.server_core) as server:
        for number, generator in rounds(contenders, bench.plan.pairs, bench.plan.seed):
            trials.append(bench.measure(generator, server, full_speed, case=COST, round_=number))
    for generator in contenders:
        flags = ("--delay", DELAY, "--seed", str(bench.plan.seed), "--spin")
        with lean(bench.programs["lean"], bench.server_core, *flags) as server:
            trial = bench.measure(generator, server, even, case=TRUTH)
            trial.server = server.stats()["delay_ms"]
            trials.append(trial)
    return trials


def _agents(bench: Bench, count: int) -> list[Generator]:
    def arguments(load: Load) -> list[str]:
        return [*weir(load), "--on", "local", "--agents", str(count)]

    return [Generator(label(count), plain.program, arguments, _read) for plain in bench.generators([ALONE])]


def _read(finished: Finished, load: Load) -> Report:
    """What weir says of any run, and how far apart its agents began."""
    report = read_weir(finished, load)
    agents = json.loads(finished.stdout)["agents"]
    began = [agent["began_ms"] for agent in agents]
    report.skew_ms = max(began) - min(began) + 2 * max(agent["clock_error_ms"] for agent in agents)
    return report
