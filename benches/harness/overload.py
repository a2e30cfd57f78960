"""`weir gate`, Envoy and Caddy in front of a service of 50 slots, below and above its capacity."""

from __future__ import annotations

import csv
import json
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness import culprits, footprint
from harness.generators import Load, read_weir
from harness.process import run
from harness.proxies import CADDY_LIMITED, ENVOY_GUARDED, available, gate, gateway
from harness.servers import Server, StartError, service
from harness.smart import LOADS, load_case
from harness.trial import Bench, Trial, rounds, shown

SLOTS = 50
#: Mean of 100..600 ms, and the calls per second of all slots.
MEAN_S = 0.35
CAPACITY = SLOTS / MEAN_S
DEADLINE_MS = 1_000
#: Tolerance of responses in time: of the generator's wake-up and of the clock of its log.
AFTER_MS = 5
WORK = ("--mix", "good=1", "--delay", "100ms..600ms", "--slots", str(SLOTS), "--max-queue", "1000000")
TIMES = (0.5, 1.0, 2.0, 5.0, 10.0)

GUARDED, BARE = "weir gate", "weir gate, limit = none"
#: Gateways with a limit of their own, in open loops alone.
PEERS = (ENVOY_GUARDED, CADDY_LIMITED)
SMART = "weir gate --smart"
#: A limit of 1 with a slow call in its slot: all other calls are rejected.
REJECTING, REJECTIONS = "weir gate, max_in_flight = 1", "rejections"
COST = "1 KiB, closed loop, 100 connections"


@dataclass(frozen=True)
class Ask:
    """Load on a gate in front of a kind of upstream."""

    case: str
    name: str
    kind: str
    path: str
    load: tuple[str, ...]
    seconds: int


def times_case(times: float) -> str:
    """Return the name of an open loop in the tables."""
    return f"{times:g} x capacity"


def measure(bench: Bench) -> list[Trial]:
    """Measure open loops up to ten times the capacity, the six load tests, a heavy route, and CPU costs."""
    if "weir" not in bench.programs:
        return []
    parts = (_open, _loads, culprits.measure, _rejections, _cost)
    return [trial for part in parts for trial in part(bench)]


def _open(bench: Bench) -> list[Trial]:
    plan = bench.plan
    names = (GUARDED, BARE, *available(PEERS, bench.programs))
    asks = [(times, name) for times in TIMES for name in names]
    trials = []
    for number, (times, name) in rounds(asks, plan.slow_rounds, plan.seed):
        rate, seconds = times * CAPACITY, plan.overload_s
        load = ("-r", f"{rate:.1f}", "--arrivals", "poisson", "-d", f"{seconds}s", "--seed", str(number))
        ask = Ask(times_case(times), name, "guarded", "api/work", load, seconds)
        trials.append(_trial(bench, ask, number))
    return trials


def _loads(bench: Bench) -> list[Trial]:
    trials = []
    for number, load in rounds(LOADS, bench.plan.slow_rounds, bench.plan.seed):
        users, ramp_up_s, loops = load
        made = max(1, round(loops * bench.plan.loops))
        flags = ("--users", str(users), "--ramp-up", f"{ramp_up_s}s", "--loops", str(made))
        seconds = ramp_up_s + made * DEADLINE_MS // 1000
        path = f"api/smart/{DEADLINE_MS}"
        ask = Ask(load_case(*load), SMART, "smart", path, flags, seconds)
        trials.append(_trial(bench, ask, number))
    return trials


def _rejections(bench: Bench) -> list[Trial]:
    plan = bench.plan
    trials = []
    for number in range(plan.pairs):
        load = ("-c", "100", "-d", f"{plan.gate_s}s")
        trials.append(_trial(bench, Ask(REJECTIONS, REJECTING, "rejecting", "api/work", load, plan.gate_s), number))
    return trials


def _cost(bench: Bench) -> list[Trial]:
    plan = bench.plan
    trials = []
    for number, name in rounds((GUARDED, BARE), plan.pairs, plan.seed):
        load = ("-c", "100", "-d", f"{plan.gate_s}s")
        trials.append(_trial(bench, Ask(COST, name, "plain", "static?bytes=1024", load, plan.gate_s), number))
    return trials


@contextmanager
def _started(bench: Bench, name: str, kind: str, seed: int) -> Iterator[Server]:
    """Start a gate, or a peer, and its service, which shares a core with the generator."""
    weir = bench.programs["weir"]
    work = {
        "guarded": WORK,
        "smart": ("--slots", str(SLOTS), "--max-queue", "1000000"),
        "rejecting": ("--mix", "good=1", "--delay", "1h"),
        "plain": (),
    }[kind]
    with ExitStack() as stack:
        if kind == "plain":
            upstream = stack.enter_context(
                service("weir serve httpbin", [str(weir), "serve", "httpbin"], bench.server_core)
            )
        else:
            command = [str(weir), "serve", "work", "--seed", str(seed), *work]
            upstream = stack.enter_context(service("weir serve work", command, bench.server_core))
        if name in PEERS:
            yield stack.enter_context(gateway(name, bench.programs, bench.generator_core, upstream))
            return
        url = upstream.url.rstrip("/")
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="weir-overload-")))
        if kind == "smart":
            flags: tuple[str, ...] = ("--smart", url)
        else:
            flags = ("--config", str(_config(folder, name, url)))
        yield stack.enter_context(gate(name, weir, bench.generator_core, *flags))


def _config(folder: Path, name: str, url: str) -> Path:
    limit = {BARE: 'concurrency_limit = "none"', REJECTING: "max_in_flight = 1"}.get(name, "")
    path = folder / "gate.toml"
    path.write_text(f"""
[upstreams.work]
urls = ["{url}"]
{limit}

[[routes]]
match = {{ path = "/{{*rest}}" }}
upstream = "work"
policy = {{ deadline = "{"1h" if name == REJECTING else f"{DEADLINE_MS}ms"}" }}
""")
    return path


def _trial(bench: Bench, ask: Ask, number: int) -> Trial:
    trial = Trial(ask.case, ask.name, number, asked_s=ask.seconds)
    try:
        with ExitStack() as stack:
            server = stack.enter_context(_started(bench, ask.name, ask.kind, bench.plan.seed + number))
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="weir-overload-")))
            log = folder / "requests.jtl"
            url = server.url + ask.path
            command = [str(bench.programs["weir"]), "load", url, "-t", "1", "--format", "json", *ask.load]
            trial.command = shown(command)
            # Without a log where it would have millions of lines, and be most of the load.
            logged = ask.kind in ("guarded", "smart")
            pid = server.process.pid
            before = footprint.spent(pid)
            finished = run(
                [*command, "--jtl", str(log)] if logged else command,
                core=bench.server_core,
                cost=bench.programs["cost"],
                seconds=ask.seconds,
            )
            cpu_s = footprint.cpu_s(before, footprint.spent(pid))
            if finished.status not in (0, 3):
                lines = finished.stderr.strip().splitlines()
                raise ValueError(f"exit {finished.status}: {lines[-1] if lines else 'no message'}")
            trial.report = read_weir(finished, Load("", ask.seconds, Path())).to_dict()
            said = json.loads(finished.stdout)
            trial.server = _noted(said)
            if logged:
                trial.server |= by_status(log)
                # A gateway without a deadline responds late; such a response is no goodput.
                trial.server["good_per_s"] = trial.server["in_time"] / trial.server["seconds"]
            trial.requests = trial.server["responses"]
            trial.server["cpu_us"] = 1e6 * cpu_s / max(trial.requests, 1)
            trial.server["responses_per_core_s"] = trial.requests / cpu_s if cpu_s else 0.0
    except (StartError, ValueError, KeyError, RuntimeError, OSError) as error:
        trial.error = f"not measured: {type(error).__name__}: {error}"
    trial.say(
        "{calls:>7,} calls, {transport_failures} without response, {good_per_s:.1f} good/s,"
        " good p99 {good_p99_ms} p99.9 {good_p999_ms}, rejected p99 {rejected_p99_ms} ms, {cpu_us:.1f} us CPU/response"
    )
    return trial


def _noted(said: dict[str, Any]) -> dict[str, Any]:
    responses = sum(said["status"].values())
    made = said["requests"]["total"] + said["requests"]["unfinished"] + said["requests"]["dropped"]
    return {
        "calls": made,
        "responses": responses,
        "transport_failures": made - responses,
        "status": said["status"],
        "seconds": said["duration_s"],
        "good_per_s": said["status"].get("200", 0) / said["duration_s"],
    }


def by_status(log: Path) -> dict[str, Any]:
    """Count responses in time, and compute percentiles in ms of good, rejected and others, from the log of all."""
    times: dict[str, list[int]] = {"good": [], "rejected": [], "late": [], "other": []}
    kinds = {"200": "good", "503": "rejected", "429": "rejected", "504": "late"}
    with log.open(newline="") as file:
        for row in csv.DictReader(file):
            times[kinds.get(row["responseCode"], "other")].append(int(row["elapsed"]))
    noted: dict[str, Any] = {"of": dict(Counter({kind: len(found) for kind, found in times.items()}))}
    noted["in_time"] = sum(ms <= DEADLINE_MS + AFTER_MS for ms in times["good"])
    for kind, found in times.items():
        found.sort()
        for quantile, word in ((0.5, "p50"), (0.99, "p99"), (0.999, "p999"), (1.0, "max")):
            if found:
                noted[f"{kind}_{word}_ms"] = found[min(len(found) - 1, int(quantile * len(found)))]
    return noted
