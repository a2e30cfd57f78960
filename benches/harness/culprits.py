"""A service of few slots with one heavy route: what the calls of the other route lose, with `shed_culprits` or without.

The case of `weir simulate --scenario heavy-route`, with sockets: 2% of the calls take 73 times as long as the others,
60% of the time, and 1.5 times the capacity with the others.
"""

from __future__ import annotations

import csv
import subprocess
import tempfile
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from harness import footprint
from harness.process import environment, pinned, run
from harness.proxies import gate
from harness.servers import StartError, service
from harness.trial import Bench, Trial, rounds, shown

SLOTS = 50
LIGHT_S, HEAVY_S = 0.05, 3.65
LIGHT_PER_S = 0.6 * SLOTS / LIGHT_S
HEAVY_PER_S = LIGHT_PER_S * 0.02 / 0.98
#: Time before the first heavy call, in which the gate learns its limit.
LEAD_S = 10
#: A light call has this long, and a few ms for the clock of the log.
DEADLINE_MS, AFTER_MS = 1_000, 5
CULPRITS = "2% of the calls, 60% of the time"
SHEDDING, COUNTING, BARE = "weir gate, shed_culprits", "weir gate", "weir gate, limit = none"
KEYS = {SHEDDING: "shed_culprits = {}", COUNTING: "", BARE: 'concurrency_limit = "none"'}


def measure(bench: Bench) -> list[Trial]:
    """Measure each gate in turn."""
    return [_trial(bench, name, number) for number, name in rounds(KEYS, bench.plan.slow_rounds, bench.plan.seed)]


def _config(folder: Path, name: str, url: str) -> Path:
    path = folder / "gate.toml"
    path.write_text(f"""
[upstreams.work]
urls = ["{url}"]
{KEYS[name]}

[[routes]]
match = {{ path = "/api/light" }}
rewrite = {{ path = "/api/work" }}
policy = {{ deadline = "{DEADLINE_MS}ms" }}

[[routes]]
match = {{ path = "/api/heavy" }}
rewrite = {{ path = "/api/work", query = "delay_ms={HEAVY_S * 1000:.0f}" }}
policy = {{ deadline = "30s" }}
""")
    return path


def _trial(bench: Bench, name: str, number: int) -> Trial:
    seconds = LEAD_S + bench.plan.overload_s
    trial = Trial(CULPRITS, name, number, asked_s=seconds)
    weir, seed = str(bench.programs["weir"]), str(bench.plan.seed + number)
    work = ("--mix", "good=1", "--delay", "20ms..80ms", "--slots", str(SLOTS), "--max-queue", "1000000")
    try:
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="weir-culprits-")))
            command = [weir, "serve", "work", "--seed", seed, *work]
            upstream = stack.enter_context(service("weir serve work", command, bench.server_core))
            config = _config(folder, name, upstream.url.rstrip("/"))
            server = stack.enter_context(gate(name, Path(weir), bench.generator_core, "--config", str(config)))
            log, heavy_log = folder / "light.jtl", folder / "heavy.jtl"
            load = [weir, "load", "-t", "1", "--arrivals", "poisson", "--seed", seed, "--format", "json"]
            light = [*load, f"{server.url}api/light", "-r", f"{LIGHT_PER_S:.1f}", "-d", f"{seconds}s"]
            heavy = [*load, f"{server.url}api/heavy", "-r", f"{HEAVY_PER_S:.2f}"]
            heavy += ["-d", f"{seconds - LEAD_S}s", "--jtl", str(heavy_log)]
            trial.command = shown(light)
            waits = pinned(["sh", "-c", f'sleep {LEAD_S}; exec "$@"', "sh", *heavy], bench.server_core)
            others = subprocess.Popen(waits, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment())
            stack.callback(others.wait)
            stack.callback(others.terminate)
            pid = server.process.pid
            before = footprint.spent(pid)
            cost = bench.programs["cost"]
            finished = run([*light, "--jtl", str(log)], core=bench.server_core, cost=cost, seconds=seconds)
            if finished.status not in (0, 3):
                lines = finished.stderr.strip().splitlines()
                raise ValueError(f"exit {finished.status}: {lines[-1] if lines else 'no message'}")
            cpu_s = footprint.cpu_s(before, footprint.spent(pid))
            others.wait(timeout=60)
            trial.server = counts(log, LEAD_S) | {f"heavy_{key}": value for key, value in counts(heavy_log, 0).items()}
            trial.requests = trial.server["calls"]
            trial.server["cpu_s"] = cpu_s
    except (StartError, ValueError, KeyError, RuntimeError, OSError, subprocess.TimeoutExpired) as error:
        trial.error = f"not measured: {type(error).__name__}: {error}"
    trial.say(
        "{lost:.2%} of {calls:,} light calls lost, {of}; {heavy_calls} heavy calls, {heavy_of};"
        " {cpu_s:.1f} s CPU of the gate"
    )
    return trial


def counts(log: Path, lead_s: float) -> dict[str, Any]:
    """Count the calls that began after `lead_s`, by status, and the fraction without a success in time."""
    with log.open(newline="") as file:
        rows = [(int(row["timeStamp"]), row["responseCode"], int(row["elapsed"])) for row in csv.DictReader(file)]
    begun = min((stamp for stamp, _, _ in rows), default=0)
    made = [(code, ms) for stamp, code, ms in rows if stamp - begun >= 1000 * lead_s]
    in_time = sum(code == "200" and ms <= DEADLINE_MS + AFTER_MS for code, ms in made)
    lost = 1 - in_time / len(made) if made else 0.0
    return {"calls": len(made), "of": dict(Counter(code for code, _ in made)), "lost": lost}
