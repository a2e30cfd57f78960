"""CPU cost of a call with HTTP clients for Python: `weir.AsyncClient` and `weir.Client` beside others."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path

from harness.process import run
from harness.programs import PEERS, SCRIPTS
from harness.servers import PAGE, PAGE_BYTES, Server, nginx
from harness.trial import Bench, Trial, rounds, shown

AT_ONCE = 64
AWAITED, ALONE = f"awaited, {AT_ONCE} at a time", "one at a time"
ASYNC, SYNC = "weir.AsyncClient", "weir.Client"
UVLOOP = " + uvloop"
#: Peers of awaited calls; libcurl's own loop is not awaited, and shows the minimum cost.
AWAITED_PEERS = ("aiohttp", f"aiohttp{UVLOOP}", "httpx", "httpx2", "pycurl multi")
ALONE_PEERS = ("http.client", "requests", "niquests", "httpx", "httpx2", "curl_cffi", "pycurl")
#: Clients with a folder of their own, since they change what others import.
APART = ("niquests",)
WARMUP_S = 0.5


@dataclass(frozen=True)
class Ask:
    """Client, and its number of calls in flight."""

    case: str
    name: str
    at_once: int


def measure(bench: Bench) -> list[Trial]:
    """Measure interleaved rounds of all clients at nginx, each in its own process."""
    if "nginx" not in bench.programs:
        return []
    parts = [
        [Ask(AWAITED, name, AT_ONCE) for name in (ASYNC, ASYNC + UVLOOP, *AWAITED_PEERS)],
        [Ask(ALONE, name, 1) for name in (SYNC, *ALONE_PEERS)],
    ]
    trials = []
    with nginx(bench.programs["nginx"], bench.server_core) as server:
        for asks in parts:
            for number, ask in rounds(asks, bench.plan.pairs, bench.plan.seed):
                trials.append(_trial(bench, server, ask, number))
    return trials


def python(name: str) -> Path:
    """Return the interpreter that has the client, installed by `benches/peers.sh`."""
    folder = PEERS / (f"client-{name}" if name in APART else "clients")
    return folder / "bin" / "python"


def _trial(bench: Bench, server: Server, ask: Ask, number: int) -> Trial:
    trial = Trial(ask.case, ask.name, number, "", bench.plan.client_s, ask.at_once, 0, 0.0, 0.0, 0.0)
    seconds = bench.plan.client_s
    command = [str(python(ask.name)), str(SCRIPTS / "client.py"), "--client", ask.name, "--url", server.url + PAGE]
    command += ["--seconds", str(seconds), "--warmup", str(WARMUP_S)]
    command += ["--at-once", str(ask.at_once), "--bytes", str(PAGE_BYTES)]
    trial.command = shown(command)
    try:
        if not python(ask.name).exists():
            raise ValueError("not on this machine")
        counted = server.requests()
        finished = run(command, core=bench.generator_core, cost=bench.programs["cost"], seconds=seconds + WARMUP_S)
        served = server.requests() - counted - server.own_requests
        if finished.status:
            lines = finished.stderr.strip().splitlines()
            raise ValueError(lines[-1] if lines else f"exit {finished.status}")
        said = json.loads(finished.stdout)
        trial.requests, trial.max_rss_mb = said["calls"], finished.max_rss_mb
        trial.report = {"requests": said["calls"]}
        trial.server = {
            "cpu_us_per_call": said["cpu_s"] * 1e6 / max(said["calls"], 1),
            "rate_per_s": said["calls"] / said["seconds"],
            "busy": said["cpu_s"] / said["seconds"],
            "version": said["version"],
            "served": served,
        }
        if not said["calls"] or served < said["calls"]:
            trial.error = f"{said['calls']} calls, but the server counted {served}"
    except (ValueError, KeyError, OSError) as error:
        trial.error = f"not measured: {error}"
    _say(trial)
    return trial


def _say(trial: Trial) -> None:
    noted = trial.server
    outcome = trial.error or (
        f"{noted['rate_per_s']:>10,.0f}/s {noted['cpu_us_per_call']:8.2f} us/call {noted['busy']:5.0%} busy"
        f" {trial.max_rss_mb:7.1f} MB"
    )
    print(f"{trial.case:<28} {trial.contender:<26} {trial.round}  {outcome}", file=sys.stderr)
