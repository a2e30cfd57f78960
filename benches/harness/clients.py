"""CPU cost of a call with HTTP clients for Python: weir's clients, and its transports under others, beside others."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from harness.process import run
from harness.programs import PEERS, SCRIPTS
from harness.servers import LARGE, LARGE_BYTES, PAGE, PAGE_BYTES, Server, nginx
from harness.trial import Bench, Trial, rounds, shown

AT_ONCE = 64
AWAITED, ALONE, STREAMED = f"awaited, {AT_ONCE} at a time", "one at a time", "1 MiB, streamed"
#: Other numbers of awaited calls in flight, for the transports and what they stand beside.
FEW, MANY = "awaited, 1 at a time", "awaited, 256 at a time"
TRANSPORT, ADAPTER = "httpx2, weir's transport", "requests, weir's adapter"
ASYNC, SYNC = "weir.AsyncClient", "weir.Client"
UVLOOP = " + uvloop"
#: Peers of awaited calls; libcurl's own loop is not awaited, and shows the minimum cost.
AWAITED_PEERS = ("aiohttp", f"aiohttp{UVLOOP}", "httpx", "httpx2", "httpx-aiohttp", "pycurl multi")
ALONE_PEERS = ("http.client", "requests", "niquests", "httpx", "httpx2", "curl_cffi", "pycurl")
BESIDE = (TRANSPORT, "httpx, weir's transport", "httpx2", "httpx", "httpx-aiohttp", "aiohttp")
STREAMS = ("stream httpx2, weir's transport", "stream httpx2", "stream pycurl")
#: Clients with a folder of their own, since they change what others import.
APART = ("niquests",)
WARMUP_S = 0.5


@dataclass(frozen=True)
class Ask:
    """Client, and its number of calls in flight."""

    case: str
    name: str
    at_once: int
    is_large: bool = False


def measure(bench: Bench) -> list[Trial]:
    """Measure interleaved rounds of all clients at nginx, each in its own process."""
    if "nginx" not in bench.programs:
        return []
    parts = [
        [Ask(AWAITED, name, AT_ONCE) for name in (ASYNC, ASYNC + UVLOOP, *BESIDE[:2], *AWAITED_PEERS)],
        [Ask(FEW, name, 1) for name in BESIDE],
        [Ask(MANY, name, 256) for name in BESIDE],
        [Ask(ALONE, name, 1) for name in (SYNC, TRANSPORT, ADAPTER, *ALONE_PEERS)],
        [Ask(STREAMED, name, 1, is_large=True) for name in STREAMS],
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
    trial = Trial(ask.case, ask.name, number, asked_s=bench.plan.client_s, connections=ask.at_once)
    seconds = bench.plan.client_s
    page, length = (LARGE, LARGE_BYTES) if ask.is_large else (PAGE, PAGE_BYTES)
    command = [str(python(ask.name)), str(SCRIPTS / "client.py"), "--client", ask.name, "--url", server.url + page]
    command += ["--seconds", str(seconds), "--warmup", str(WARMUP_S)]
    command += ["--at-once", str(ask.at_once), "--bytes", str(length)]
    if ask.case in {AWAITED, FEW, MANY}:
        command.append("--awaited")
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
    trial.say("{rate_per_s:>10,.0f}/s {cpu_us_per_call:8.2f} us/call {busy:5.0%} busy {trial.max_rss_mb:7.1f} MB")
    return trial
