"""Streams of events: times beside the service's own record, and the CPU cost of an event."""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from harness.footprint import cpu_s, spent
from harness.process import Finished, run
from harness.servers import StartError, service
from harness.trial import Bench, Trial, rounds, shown

WEIR = "weir"
VERSIONS: dict[str, tuple[str, ...]] = {"HTTP/1.1": (), "HTTP/2, 50 streams": ("--h2c", "--streams", "50")}
PERCENTILES = {"p50": 0.5, "p75": 0.75, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999}
#: Times by their names, and where they are in the JSON of a run.
TIMES = {"first event": "first_event_service_ms", "gap": "gap_ms"}


@dataclass(frozen=True)
class Shape:
    """Streams at the same time, with times that leave some 2,000 events per second at most."""

    streams: int
    gap: str
    #: Mean length of a stream in seconds: its first event after 110 ms, and 10 more.
    length_s: float
    first: str = "20ms..200ms"
    events: int = 11

    @property
    def name(self) -> str:
        """Name in the tables."""
        plural = "" if self.streams == 1 else "s"
        return f"{self.streams:,} stream{plural}, gaps of {self.gap.replace('..', ' to ')}"


TRUTH = (
    Shape(1, "5ms..35ms", 0.31),
    Shape(10, "5ms..35ms", 0.31),
    Shape(100, "20ms..80ms", 0.61),
    Shape(1000, "200ms..800ms", 5.11),
)
#: 10,000 events per second on 200 streams.
COST_STREAMS, COST_GAP, EVENT_BYTES = 200, "20ms", 200
COST = f"{COST_STREAMS} streams, 10,000 events/s"


def measure(bench: Bench) -> list[Trial]:
    """Measure interleaved rounds: times at each number of streams, then the cost of an event."""
    if WEIR not in bench.programs:
        return []
    trials = []

    def empty(case: str, version: str, streams: int, number: int) -> Trial:
        return Trial(case, version, number, asked_s=bench.plan.delay_s, connections=streams)

    truths = [(shape, version) for shape in TRUTH for version in VERSIONS]
    for number, (shape, version) in rounds(truths, bench.plan.pairs, bench.plan.seed):
        flags = ["--events", str(shape.events), "--gap", shape.gap, "--first-delay", shape.first]
        # Evenly: a service that gets all at once accepts some late, and its record begins only then.
        rate = ["--rate", f"{shape.streams / shape.length_s:.2f}"]
        trials.append(_trial(bench, empty(shape.name, version, shape.streams, number), flags, rate))
    for number, version in rounds(VERSIONS, bench.plan.pairs, bench.plan.seed):
        events = bench.plan.delay_s * 1000 // 20
        flags = ["--events", str(events), "--gap", COST_GAP, "--first-delay", "0ms", "--event-bytes", str(EVENT_BYTES)]
        trials.append(_trial(bench, empty(COST, version, COST_STREAMS, number), flags, ["-n", str(COST_STREAMS)]))
    return trials


def _trial(bench: Bench, trial: Trial, flags: list[str], pace: list[str]) -> Trial:
    """Load a service of streams; requests of the trial are events that the service has sent."""
    program = str(bench.programs[WEIR])
    seconds, version, streams = trial.asked_s, trial.contender, trial.connections or 1
    with tempfile.TemporaryDirectory(prefix="weir-streams-") as folder:
        record = Path(folder) / "record"
        seeded = ["--record", str(record), "--seed", str(bench.plan.seed + trial.round)]
        try:
            with service("stream", [program, "serve", "stream", *flags, *seeded], bench.server_core) as server:
                command = [program, "load", f"{server.url}sse", "--stream", "-t", "1", "--format", "json"]
                # Twice as many as there are on average, for the open loop.
                most = streams if pace[0] == "-n" else 2 * streams + 10
                command += ["-c", str(most if not VERSIONS[version] else math.ceil(most / 50))]
                command += [*pace, *([] if pace[0] == "-n" else ["-d", f"{seconds}s"]), *_streams(version, streams)]
                before = spent(server.process.pid)
                finished = run(command, core=bench.generator_core, cost=bench.programs["cost"], seconds=seconds)
                trial.server["cpu_s"] = cpu_s(before, spent(server.process.pid))
            trial.command = shown(command)
            _fill(trial, finished, record)
        except (StartError, ValueError, KeyError, OSError) as error:
            trial.error = f"not measured: {type(error).__name__}: {error}"
    return trial


def _streams(version: str, streams: int) -> list[str]:
    flags = list(VERSIONS[version])
    if flags:
        flags[-1] = str(min(streams, 50))
    return flags


def _fill(trial: Trial, finished: Finished, record: Path) -> None:
    if finished.status:
        lines = finished.stderr.strip().splitlines()
        trial.error = f"exit {finished.status}: {lines[-1] if lines else 'no message'}"
        return
    said: dict[str, Any] = json.loads(finished.stdout)
    sent = [json.loads(line)["sent_ns"] for line in record.read_text("utf-8").splitlines()]
    events = sum(map(len, sent))
    trial.requests = events
    trial.user_us_per_request = finished.user_s * 1e6 / max(events, 1)
    trial.sys_us_per_request = finished.sys_s * 1e6 / max(events, 1)
    trial.max_rss_mb = finished.max_rss_mb
    trial.server |= {
        "first event": percentiles(times[0] for times in sent if times),
        "gap": percentiles(b - a for times in sent for a, b in pairwise(times)),
    }
    streams = said["streams"]
    trial.report = {name: {key: streams[field][key] for key in PERCENTILES} for name, field in TIMES.items()} | {
        "events": streams["events"],
        "failed": said["requests"]["failed"],
        "trusted": said["trust"]["ok"],
        "reasons": said["trust"]["reasons"],
    }
    if said["requests"]["failed"]:
        trial.error = f"{said['requests']['failed']} requests failed"


def percentiles(nanoseconds: Iterable[int]) -> dict[str, float]:
    """Return the percentiles in ms: the smallest value that at least this fraction does not exceed."""
    ordered = sorted(nanoseconds)
    if not ordered:
        return {}
    last = len(ordered) - 1
    return {name: ordered[min(math.ceil(q * len(ordered)) - 1, last)] / 1e6 for name, q in PERCENTILES.items()}


def deviation(trial: Trial, name: str, slack_ms: float = 0.05, keys: Iterable[str] = PERCENTILES) -> float | None:
    """Return the largest deviation of these percentiles from the record, as a fraction of 1% + the slack."""
    reported, true = trial.report.get(name), trial.server.get(name)
    if not reported or not true:
        return None
    pairs = [(float(reported[key]), float(true[key])) for key in keys]
    return max(abs(found - known) / (0.01 * known + slack_ms) for found, known in pairs)
