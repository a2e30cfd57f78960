"""Responses in time from `weir gate` in front of a service that is unreliable, sometimes slow, or broken."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.generators import Load, read_weir
from harness.process import run
from harness.programs import STUDIES
from harness.proxies import ENVOY, ENVOY_HEDGING, POLICIES, available, gate, gateway
from harness.sampling import Sample, after, sampled, windows
from harness.servers import Server, StartError, service
from harness.trial import Bench, Item, Trial, rounds, shown

SMART = "weir gate --smart"
TIMEOUT_MS = 1_000
#: Users, ramp-up in s, and calls per user of the six reference load tests.
LOADS: tuple[tuple[int, int, int], ...] = tuple(
    (test["users"], test["ramp_up_s"], test["loops"])
    for test in json.loads((STUDIES / "hedging" / "tests.json").read_text())
)

REPLICAS = 3
RARELY_SLOW = ("--mix", "good=1", "--delay", "bimodal:8ms..12ms,400ms..600ms,1%")
HEDGE = ("--hedge", "p98:1")
HEDGING = "1 % of calls 50 times slower"
WITHOUT, WITH = "weir gate", f"weir gate {' '.join(HEDGE)}"
#: Gateways with hedging, and the same without it.
HEDGERS = {WITH: WITHOUT, ENVOY_HEDGING: ENVOY}
HEDGE_RATE, HEDGE_WARMUP_S = 400, 5

#: Permanent failures of the service.
STORMS: dict[str, tuple[str, ...]] = {
    "every response a 500": ("--mix", "error=1", "--delay", "5ms"),
    "every response after 2 s": ("--mix", "good=1", "--delay", "2s"),
}
STORM, STORM_RATE = f"weir gate {' '.join(POLICIES)}", 500
SHARE, FLOOR = 0.05, 1  # fraction and minimum of the budget in POLICIES


@dataclass(frozen=True)
class Ask:
    """Load on a gate."""

    case: str
    name: str
    server: Server
    load: tuple[str, ...]
    seconds: int
    warmup_s: int = 0


def measure(bench: Bench) -> list[Trial]:
    """Measure the six load tests, hedging, and services that always fail or are always slow."""
    if "weir" not in bench.programs:
        return []
    return [trial for part in (_loads, _hedging, _storms) for trial in part(bench)]


def load_case(users: int, ramp_up_s: int, loops: int) -> str:
    """Return the name of a load test in the tables."""
    return f"{users:,} users in {ramp_up_s} s, {loops} calls each"


def _loads(bench: Bench) -> list[Trial]:
    return [_load(bench, load, number) for number, load in _rounds(bench, LOADS, bench.plan.slow_rounds)]


def _load(bench: Bench, load: tuple[int, int, int], number: int) -> Trial:
    """Run a load test on a new service and a new gate, so that it is independent of the one before."""
    users, ramp_up_s, loops = load
    made = max(1, round(loops * bench.plan.loops))
    flags = ("--users", str(users), "--ramp-up", f"{ramp_up_s}s", "--loops", str(made))
    seconds = ramp_up_s + made * TIMEOUT_MS // 1000
    with ExitStack() as stack:
        try:
            server = _gate(bench, stack, SMART, "--smart", _origin(_work(bench, stack, seed=number)))
        except StartError as why:
            return Trial(load_case(*load), SMART, number, error=str(why))
        ask = Ask(load_case(*load), SMART, server, flags, seconds)
        return _trial(bench, ask, number, f"api/smart/{TIMEOUT_MS}")


def _hedging(bench: Bench) -> list[Trial]:
    seconds = bench.plan.hedge_s
    load = ("-r", str(HEDGE_RATE), "-d", f"{seconds}s", "--warmup", f"{HEDGE_WARMUP_S}s")
    with ExitStack() as stack:
        try:
            replicas = [_work(bench, stack, *RARELY_SLOW, seed=seed) for seed in range(REPLICAS)]
            hosts = [word for replica in replicas for word in ("--upstream", _origin(replica))]
            servers = {
                name: _gate(bench, stack, name, *hosts, *flags) for name, flags in ((WITHOUT, ()), (WITH, HEDGE))
            }
            for name in available((ENVOY, ENVOY_HEDGING), bench.programs):
                alone = bench.generator_core
                servers[name] = stack.enter_context(gateway(name, bench.programs, alone, *replicas))
            asks = [Ask(HEDGING, name, server, load, seconds, HEDGE_WARMUP_S) for name, server in servers.items()]
        except StartError as why:
            return [Trial(HEDGING, WITH, 0, error=str(why))]
        return [_trial(bench, ask, number, "api/work") for number, ask in _rounds(bench, asks, bench.plan.pairs)]


def _storms(bench: Bench) -> list[Trial]:
    seconds = bench.plan.storm_s
    load = ("-r", str(STORM_RATE), "-d", f"{seconds}s")
    with ExitStack() as stack:
        try:
            asks = []
            for case, flags in STORMS.items():
                work = _work(bench, stack, *flags)
                server = _gate(bench, stack, STORM, "--upstream", _origin(work), *POLICIES)
                asks.append(Ask(case, STORM, server, load, seconds))
        except StartError as why:
            return [Trial(case, STORM, 0, error=str(why)) for case in STORMS]
        return [_trial(bench, ask, number, "api/work") for number, ask in _rounds(bench, asks, bench.plan.slow_rounds)]


def _rounds(bench: Bench, items: Iterable[Item], count: int) -> Iterator[tuple[int, Item]]:
    return rounds(items, count, bench.plan.seed)


def _work(bench: Bench, stack: ExitStack, *flags: str, seed: int = 0) -> Server:
    """Start the service, which shares a core with the generator; the gate has the other."""
    command = [str(bench.programs["weir"]), "serve", "work", "--seed", str(bench.plan.seed + seed), *flags]
    return stack.enter_context(service("weir serve work", command, bench.server_core))


def _gate(bench: Bench, stack: ExitStack, name: str, *flags: str) -> Server:
    return stack.enter_context(gate(name, bench.programs["weir"], bench.generator_core, *flags))


def _origin(server: Server) -> str:
    return server.url.rstrip("/")


def _trial(bench: Bench, ask: Ask, number: int, path: str) -> Trial:
    trial = Trial(ask.case, ask.name, number)
    url = ask.server.url + path
    command = [str(bench.programs["weir"]), "load", url, "-t", "1", "--format", "json", *ask.load]
    trial.command, trial.asked_s = shown(command), ask.seconds
    try:
        with sampled(ask.server) as samples:
            finished = run(command, core=bench.server_core, cost=bench.programs["cost"], seconds=ask.seconds)
        if finished.status:
            lines = finished.stderr.strip().splitlines()
            raise ValueError(f"exit {finished.status}: {lines[-1] if lines else 'no message'}")
        trial.max_rss_mb = finished.max_rss_mb
        trial.report = read_weir(finished, Load("", ask.seconds, Path())).to_dict()
        trial.server = _noted(json.loads(finished.stdout), samples, ask.warmup_s)
        trial.requests = trial.server["answers"]
    except (ValueError, KeyError, RuntimeError, OSError) as error:
        trial.error = f"not measured: {type(error).__name__}: {error}"
    trial.say(
        "{calls:>7,} calls, {transport_failures} without response, {successes:,} good,"
        " p99.9 {times[p999]:.1f} max {max_ms:.1f} ms, {extra_share:.2%} extra"
    )
    return trial


def _noted(said: dict[str, Any], samples: list[Sample], warmup_s: int) -> dict[str, Any]:
    answers = sum(said["status"].values())
    made = said["requests"]["total"] + said["requests"]["unfinished"] + said["requests"]["dropped"]
    counted = after(samples, warmup_s)
    worst = max(windows(samples), key=lambda window: _over(*window), default=None)
    noted: dict[str, Any] = {
        "calls": made,
        "answers": answers,
        "transport_failures": made - answers,
        "successes": said["status"].get("200", 0),
        "status": said["status"],
        "max_ms": said["response_ms"]["max"],
        "service_p999_ms": said["service_ms"]["p999"],
        "service_max_ms": said["service_ms"]["max"],
        "extra_share": counted.extra / max(counted.calls, 1),
        "suppressed": counted.suppressed,
        "seconds": said["duration_s"],
    }
    if worst:
        within, around = worst
        noted["worst_window"] = {"calls": around.calls, "extra": within.extra, "allowed": allowed(around)}
    return noted


def allowed(window: Sample) -> float:
    """Return the extra attempts that the budget of POLICIES allows in a window."""
    return FLOOR + SHARE * window.calls


def _over(within: Sample, around: Sample) -> float:
    return within.extra - allowed(around)
