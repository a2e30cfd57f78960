"""Closed loop: CPU cost of a request when every connection waits for its response."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from harness.generators import Generator, Load
from harness.servers import Server, lean, nginx
from harness.trial import Bench, Trial, rounds

CONNECTIONS = 100
DEPTH = 4
CONTENDERS = ("weir", "floor", "wrk", "ab", "h2load", "oha", "k6", "locust")
PIPELINED = ("weir", "floor")

#: Name in the tables, generator, requests in flight per connection.
Contender = tuple[str, Generator, int]


def measure(bench: Bench) -> list[Trial]:
    """Measure interleaved rounds of all contenders at both targets."""
    contenders = [(g.name, g, 1) for g in bench.generators(CONTENDERS)]
    contenders += [(pipelined(g.name), g, DEPTH) for g in bench.generators(PIPELINED)]
    trials = []
    with ExitStack() as stack:
        targets: list[Server] = [stack.enter_context(lean(bench.programs["lean"], bench.server_core))]
        if "nginx" in bench.programs:
            server = nginx(bench.programs["nginx"], bench.server_core)
            targets.append(stack.enter_context(server))
        pairs = [(target, contender) for target in targets for contender in contenders]
        for number, (target, contender) in rounds(pairs, bench.plan.pairs, bench.plan.seed):
            if contender[1].slow and number >= bench.plan.slow_rounds:
                continue
            trials.append(_trial(bench, target, contender, number))
    return trials


def pipelined(name: str) -> str:
    """Return the name in the tables."""
    return f"{name}, pipelined {DEPTH} deep"


def _trial(bench: Bench, target: Server, contender: Contender, number: int) -> Trial:
    label, generator, depth = contender
    load = Load("", bench.plan.closed_s, Path(), connections=CONNECTIONS, depth=depth)
    return bench.measure(generator, target, load, case=target.name, round_=number, label=label)
