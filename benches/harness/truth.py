"""Truth: accuracy of reported numbers, compared with known ones."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from harness import scenario
from harness.generators import Generator, Load, read_weir, weir
from harness.servers import Lean, lean, stopping
from harness.trial import Bench, Trial, rounds

FREEZE_RATE = 500
FROZEN_S, PERIOD_S = 1.0, 5.0
DELAY_RATE = 1_000
DELAY_CONNECTIONS = 20
#: By HTTP/2 as many requests at a time, on fewer connections.
DELAY_STREAMS = 10
HTTP2 = "weir --h2c"
SATURATED_CONNECTIONS = 100
DELAYS = {
    "constant 20 ms": "constant:20ms",
    "uniform 10-50 ms": "uniform:10ms-50ms",
    "0.8 x 10 ms, 0.2 x 200 ms": "two:10ms*0.8,200ms*0.2",
}
#: Generator, name in the tables, and connections (None: the tool's default).
FREEZE_CONTENDERS: tuple[tuple[str, str, int | None], ...] = (
    ("weir", "weir -c 50", 50),
    ("weir", "weir", None),
    ("oha", "oha -q", 50),
    ("oha --latency-correction", "oha -q --latency-correction -w", 50),
    ("h2load", "h2load --rps", 50),
)
SATURATED_CONTENDERS = ("weir", "wrk", "oha", "h2load")

FROZEN = "frozen"
STOPPED = "stopped by SIGSTOP"
SATURATED = "saturated"


def measure(bench: Bench) -> list[Trial]:
    """Measure a service that freezes, one that is stopped, ones with known delays, and a saturated one."""
    return [*_frozen(bench), *_stopped(bench), *_delayed(bench), *_saturated(bench)]


def _frozen(bench: Bench) -> list[Trial]:
    load = Load("", bench.plan.freeze_s, Path(), rate_per_s=FREEZE_RATE)
    trials = []
    for name, label, connections in FREEZE_CONTENDERS:
        for generator in bench.generators([name]):
            with lean(*_lean(bench), "--freeze", f"{FROZEN_S}/{PERIOD_S}") as server:
                asked = _with_connections(load, connections)
                trials.append(bench.measure(generator, server, asked, case=FROZEN, label=label))
    return trials


def _stopped(bench: Bench) -> list[Trial]:
    load = Load("", bench.plan.freeze_s, Path(), connections=50, rate_per_s=FREEZE_RATE)
    trials = []
    for generator in bench.generators(["weir"]):
        with lean(*_lean(bench)) as server:
            trials.append(_stopped_trial(bench, generator, server, load))
    return trials


def _stopped_trial(bench: Bench, generator: Generator, server: Lean, load: Load) -> Trial:
    with stopping(server, FROZEN_S, PERIOD_S):
        return bench.measure(generator, server, load, case=STOPPED, label="weir -c 50")


def _delayed(bench: Bench) -> list[Trial]:
    closed = Load("", bench.plan.delay_s, Path(), connections=DELAY_CONNECTIONS)
    opened = Load("", bench.plan.delay_s, Path(), rate_per_s=DELAY_RATE)
    streams = replace(closed, connections=DELAY_CONNECTIONS // DELAY_STREAMS, depth=DELAY_STREAMS)
    trials = []
    for case, delay in DELAYS.items():
        for load in (closed, opened):
            for generator in (*bench.generators(["weir"]), scenario.first_step(bench)):
                trials.append(_delayed_trial(bench, generator, load, case, delay))
        for load in (streams, replace(opened, depth=DELAY_STREAMS)):
            trials.append(_delayed_trial(bench, _over_http2(bench), load, case, delay))
    return trials


def _over_http2(bench: Bench) -> Generator:
    """Make a generator of weir whose depth is a number of streams."""

    def arguments(load: Load) -> list[str]:
        return [*weir(replace(load, depth=1)), "--h2c", "--streams", str(load.depth)]

    return Generator(HTTP2, bench.programs["weir"], arguments, read_weir)


def _delayed_trial(bench: Bench, generator: Generator, load: Load, case: str, delay: str) -> Trial:
    flags = ("--delay", delay, "--seed", str(bench.plan.seed), "--spin")
    pace = f"-c {load.connections}" if load.rate_per_s is None else f"-r {load.rate_per_s}"
    pace += f" --streams {load.depth}" if load.depth > 1 else ""
    label = f"{generator.name} {pace}"
    with lean(*_lean(bench), *flags) as server:
        trial = bench.measure(generator, server, load, case=case, label=label)
        trial.server = server.stats()["delay_ms"]
    return trial


def _saturated(bench: Bench) -> list[Trial]:
    load = Load("", bench.plan.closed_s, Path(), connections=SATURATED_CONNECTIONS)
    contenders = bench.generators(SATURATED_CONTENDERS)
    with lean(*_lean(bench)) as server:
        return [
            bench.measure(generator, server, load, case=SATURATED, round_=number)
            for number, generator in rounds(contenders, bench.plan.pairs, bench.plan.seed)
        ]


def _lean(bench: Bench) -> tuple[Path, int]:
    return bench.programs["lean"], bench.server_core


def _with_connections(load: Load, connections: int | None) -> Load:
    return Load("", load.seconds, Path(), connections=connections, rate_per_s=load.rate_per_s)
