"""Memory: peak with few and with many connections, and growth in a long run."""

from __future__ import annotations

from pathlib import Path

from harness.generators import Generator, Load
from harness.servers import Server, lean
from harness.trial import Bench, Trial

FEW, MANY = 100, 10_000
USERS, LOOPS = 1_000, 10
CONTENDERS = {
    FEW: ("weir", "floor", "wrk", "ab", "h2load", "oha"),
    MANY: ("weir", "floor", "wrk", "oha"),
}
USERS_CASE = f"{USERS:,} users x {LOOPS} loops"


def measure(bench: Bench) -> list[Trial]:
    """Measure closed loops at the lean server."""
    trials = []
    with lean(bench.programs["lean"], bench.server_core) as server:
        for connections, names in CONTENDERS.items():
            for generator in bench.generators(names):
                trials.append(_trial(bench, generator, server, connections, bench.plan.memory_s))
        for generator in bench.generators(["weir"]):
            trials.append(_trial(bench, generator, server, FEW, bench.plan.long_s))
            trials.append(_users(bench, generator, server))
    return trials


def case(connections: int, seconds: int) -> str:
    """Return the name in the tables."""
    return f"{connections:,} connections, {seconds} s"


def _trial(bench: Bench, generator: Generator, server: Server, connections: int, seconds: int) -> Trial:
    load = Load("", seconds, Path(), connections=connections)
    return bench.measure(generator, server, load, case=case(connections, seconds))


def _users(bench: Bench, generator: Generator, server: Server) -> Trial:
    load = Load("", 0, Path(), users=USERS, loops=LOOPS)
    return bench.measure(generator, server, load, case=USERS_CASE)
