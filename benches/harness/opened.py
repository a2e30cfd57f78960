"""Open loop: evenness of arrivals at the server, and CPU cost."""

from __future__ import annotations

from pathlib import Path

from harness.generators import Generator, Load
from harness.servers import Lean, lean
from harness.trial import Bench, Trial, rounds

CONNECTIONS = 100
RATE = 5_000
FAST_RATE = 50_000
CONTENDERS = ("weir", "weir --spin", "oha", "k6")
FAST_CONTENDERS = ("weir", "weir --spin")


def measure(bench: Bench) -> list[Trial]:
    """Measure interleaved rounds at both rates, at the lean server, which busy-waits."""
    plan = bench.plan
    even = [(g, Load("", plan.open_s, Path(), CONNECTIONS, RATE)) for g in bench.generators(CONTENDERS)]
    fast = [(g, Load("", plan.fast_s, Path(), CONNECTIONS, FAST_RATE)) for g in bench.generators(FAST_CONTENDERS)]
    trials = []
    with lean(bench.programs["lean"], bench.server_core, "--arrivals") as server:
        for number, (generator, load) in rounds(even + fast, plan.pairs, plan.seed):
            if not generator.slow or number < plan.slow_rounds:
                trials.append(_trial(bench, server, generator, load, number))
    return trials


def case(rate_per_s: int) -> str:
    """Return the name in the tables."""
    return f"{rate_per_s:,}/s"


def _trial(bench: Bench, server: Lean, generator: Generator, load: Load, number: int) -> Trial:
    rate = load.rate_per_s or 1
    trial = bench.measure(generator, server, load, case=case(rate), round_=number)
    trial.server = server.arrivals(rate)
    return trial
