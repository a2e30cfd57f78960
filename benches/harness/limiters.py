"""`weir.Limiter` beside other limiters for Python, at the reference rate-limited API.

All limiters of a round run at the same time, each at a service of its own, since all of them wait most of the time.
"""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby

from harness.clients import python
from harness.process import run
from harness.programs import SCRIPTS
from harness.sender import served, summary
from harness.servers import StartError
from harness.trial import Bench, Trial, rounds, shown

LIMIT, PER_S, TICK_S = 20, 1.0, 0.001
KEY = "one-key-0123456789"
WAYS_MS = (0, 10, 50)
OURS, LEARNS = "weir.Limiter", "weir.Limiter, learns"
PEERS = ("pyrate-limiter", "aiolimiter", "limits")
AT_ONCE = 2 * LIMIT
#: A run ends after this multiple of the oracle's time.
ENDS_AT = 1.5


def case(way_ms: int) -> str:
    """Return the name of a case."""
    return f"ways of 0 to {way_ms} ms" if way_ms else "ways of 0 ms"


def oracle_s(requests: int) -> float:
    """Return the time from the first to the last request of a client that has the service's count and no way."""
    return (requests - 1) // LIMIT * (PER_S + TICK_S)


def measure(bench: Bench) -> list[Trial]:
    """Measure each limiter with each way."""
    if "weir" not in bench.programs:
        return []
    trials: list[Trial] = []
    names = (OURS, LEARNS, *PEERS)
    with ThreadPoolExecutor(len(names)) as lanes:
        for way_ms in WAYS_MS:
            every = rounds(names, bench.plan.limiter_rounds, bench.plan.seed)
            for _, asks in groupby(every, key=lambda ask: ask[0]):
                lane = lanes.map(lambda ask, way_ms=way_ms: _trial(bench, ask[1], way_ms, ask[0]), list(asks))
                trials += list(lane)
    return trials


def _trial(bench: Bench, name: str, way_ms: int, number: int) -> Trial:
    requests = bench.plan.limiter_requests
    limit_s = round(ENDS_AT * oracle_s(requests), 1)
    trial = Trial(case(way_ms), name, number, asked_s=round(limit_s))
    way = f"0ms..{way_ms}ms" if way_ms else "0ms"
    flags = ["--key", KEY, "--limit", f"{LIMIT}/{PER_S:g}s", "--latency-in", way, "--latency-out", way, "--keepalive"]
    try:
        with served(bench, "ratelimit", *flags) as server:
            script = name.replace(OURS, "weir")
            command = [str(python(name)), str(SCRIPTS / "limiter.py"), script]
            command += ["--url", f"{server.url}api/request?api_key={KEY}", "--bound", str(way_ms / 1000)]
            command += ["--requests", str(requests), "--seconds", str(limit_s), "--at-once", str(AT_ONCE)]
            trial.command = shown(command)
            finished = run(command, core=bench.generator_core, cost=bench.programs["cost"], seconds=limit_s)
            said, stats = summary(finished), json.loads(server.get("/stats"))
        is_done = said["through"] >= requests
        took_s = said["took_s"] if is_done else limit_s
        trial.requests = said["through"]
        trial.server = {
            "share": oracle_s(requests) / max(took_s, 1e-9) if is_done else said["through"] / requests,
            "through": said["through"],
            "rejected": stats["rejected"]["rate_limited"] + stats["rejected"]["blocked"],
            "took_s": took_s,
            "cpu_us": finished.cpu_s * 1e6 / max(said["through"], 1),
            "version": said["version"],
        }
    except (ValueError, KeyError, OSError, StartError) as error:
        trial.error = f"not measured: {type(error).__name__}: {error}"
    trial.say("{share:6.1%} of the oracle, {rejected} rejected")
    return trial
