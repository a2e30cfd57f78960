"""Messages over WebSocket: CPU cost of a message, beside k6, and the memory of held connections."""

from __future__ import annotations

import json
import tempfile
from dataclasses import replace
from typing import Any

from harness.process import Finished, run
from harness.programs import SCRIPTS
from harness.servers import Server, StartError, service
from harness.trial import Bench, Trial, rounds, shown

WEIR, BY_ID, FLOOR, K6 = "weir", "weir, replies by an ID", "floor", "k6"
MESSAGE = '{"type":"ping"}'
CONNECTIONS, RATE = 50, 5_000
CLOSED = f"closed loop, {CONNECTIONS} connections"
OPEN = f"open loop, {RATE:,} messages/s"
#: Connections with a message each 10 s.
HELD = 10_000
IDLE = f"{HELD:,} connections, {HELD // 10:,} messages/s"


def measure(bench: Bench) -> list[Trial]:
    """Measure interleaved rounds of each case at `weir serve ws`."""
    if WEIR not in bench.programs:
        return []
    plan = bench.plan
    bare = [FLOOR] if FLOOR in bench.programs else []
    closed = [(CLOSED, name, CONNECTIONS, plan.closed_s) for name in (WEIR, BY_ID, *bare)]
    slow = [(CLOSED, K6, CONNECTIONS, plan.scenario_s)] if K6 in bench.programs else []
    opened = [(OPEN, name, CONNECTIONS, plan.open_s) for name in (WEIR, BY_ID)]
    trials = []
    for number, (case, name, connections, seconds) in rounds([*closed, *slow, *opened], plan.pairs, plan.seed):
        if name != K6 or number < plan.slow_rounds:
            trials.append(_trial(bench, Trial(case, name, number, asked_s=seconds, connections=connections)))
    trials.append(_trial(bench, Trial(IDLE, WEIR, 0, asked_s=plan.memory_s, connections=HELD)))
    return trials


def _trial(bench: Bench, trial: Trial) -> Trial:
    """Load the server; requests of the trial are messages that it has counted."""
    program = str(bench.programs[WEIR])
    try:
        with service("ws", [program, "serve", "ws"], bench.server_core) as server:
            with tempfile.TemporaryDirectory(prefix="weir-websocket-") as folder:
                command = _command(bench, trial, server, folder)
                trial = replace(trial, command=shown(command))
                finished = run(command, core=bench.generator_core, cost=bench.programs["cost"], seconds=trial.asked_s)
            _fill(trial, finished, server)
    except (StartError, ValueError, KeyError, OSError) as error:
        trial.error = f"not measured: {type(error).__name__}: {error}"
    return trial


def _command(bench: Bench, trial: Trial, server: Server, folder: str) -> list[str]:
    seconds, connections = trial.asked_s, trial.connections or 1
    url = server.url.replace("http://", "ws://")
    if trial.contender == K6:
        arguments = ["run", "--quiet", "--no-usage-report", "--summary-export", f"{folder}/k6.json"]
        arguments += ["-e", f"URL={url}", "-e", f"SECONDS={seconds}", "-e", f"CONNECTIONS={connections}"]
        return [str(bench.programs[K6]), *arguments, str(SCRIPTS / "k6_ws.js")]
    if trial.contender == FLOOR:
        loop = ["--port", str(server.port), "-c", str(connections), "-d", str(seconds)]
        return [str(bench.programs[FLOOR]), *loop, "--websocket", str(len(MESSAGE))]
    load = ["-c", str(connections), "-d", f"{seconds}s", "-t", "1", "--format", "json"]
    if trial.case != CLOSED:
        rate = RATE if trial.case == OPEN else HELD // 10
        load += ["--rate", str(rate)] + (["--ramp-up", f"{seconds // 2}s"] if trial.case == IDLE else [])
    reply = ["--reply", "$.id"] if trial.contender == BY_ID else []
    message = '{"id":{{seq}}}' if reply else MESSAGE
    return [str(bench.programs[WEIR]), "load", url, "-b", message, *reply, *load]


def _fill(trial: Trial, finished: Finished, server: Server) -> None:
    if finished.status:
        lines = finished.stderr.strip().splitlines()
        trial.error = f"exit {finished.status}: {lines[-1] if lines else 'no message'}"
        return
    said: dict[str, Any] = {} if trial.contender in (K6, FLOOR) else json.loads(finished.stdout)
    trial.requests = json.loads(server.get("/stats"))["received"]
    trial.user_us_per_request = finished.user_s * 1e6 / max(trial.requests, 1)
    trial.sys_us_per_request = finished.sys_s * 1e6 / max(trial.requests, 1)
    trial.max_rss_mb = finished.max_rss_mb
    if said:
        trial.report = {
            "failed": said["requests"]["failed"],
            "p50": said["response_ms"]["p50"],
            "p99": said["response_ms"]["p99"],
            "trusted": said["trust"]["ok"],
            "reasons": said["trust"]["reasons"],
        }
        if said["requests"]["failed"]:
            trial.error = f"{said['requests']['failed']} messages failed"
