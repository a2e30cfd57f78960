"""Agents: load, cost and report of several on one core, compared with those of a single one."""

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
    """Return the name in the tables."""
    return f"{count} agent{'' if count == 1 else 's'}"


def measure(bench: Bench) -> list[Trial]:
    """Measure interleaved rounds at full speed, then one run each at a server that records its delays."""
    contenders = [*bench.generators([ALONE]), *(generator for count in COUNTS for generator in _agents(bench, count))]
    # The duration of the other load: an agent's start costs as much CPU time as thousands of requests.
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
    """Read a report of weir, and add the skew of its agents' starts."""
    report = read_weir(finished, load)
    agents = json.loads(finished.stdout)["agents"]
    began = [agent["began_ms"] for agent in agents]
    report.skew_ms = max(began) - min(began) + 2 * max(agent["clock_error_ms"] for agent in agents)
    return report
