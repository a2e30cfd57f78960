"""Cost of `weir gate` as a proxy, beside nginx, HAProxy, Caddy and Envoy; each plain, and with policies."""

from __future__ import annotations

import json
import re
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from harness import footprint, proxies
from harness.generators import Load, read_weir, read_wrk
from harness.process import Finished, run
from harness.servers import PAGE, Nginx, Server, StartError, nginx
from harness.trial import Bench, Trial, rounds, shown

DIRECT = "no gateway"
PROXIES = (proxies.NGINX, proxies.HAPROXY, proxies.CADDY, proxies.ENVOY, proxies.PLAIN)
WITH_POLICIES = (
    proxies.NGINX_POLICED,
    proxies.HAPROXY_POLICED,
    proxies.CADDY_POLICED,
    proxies.ENVOY_POLICED,
    proxies.POLICED,
)
#: Gateways in open loops: all plain ones, and with policies those that have the same ones.
EVEN = (DIRECT, *PROXIES, proxies.ENVOY_POLICED, proxies.POLICED)
CONNECTIONS = 100
CLOSED = f"closed loop, {CONNECTIONS} connections"
RATES = (5_000, 10_000)
#: Statuses of calls that a gateway rejects.
REJECTED = ("429", "503")
#: Warm-up of open loops, which open their connections at the beginning: that cost is not measured here.
WARMUP_S = 1


@dataclass(frozen=True)
class Ask:
    """Load on a gateway, or on the upstream itself."""

    name: str
    server: Server
    rate_per_s: int | None  # None: closed loop

    @property
    def case(self) -> str:
        """Name in the tables."""
        return CLOSED if self.rate_per_s is None else case(self.rate_per_s)


def case(rate_per_s: int) -> str:
    """Return the name of an open loop in the tables."""
    return f"open loop, {rate_per_s:,}/s"


def measure(bench: Bench) -> list[Trial]:
    """Measure interleaved rounds of all gateways, closed and open loop.

    The gateway has a core to itself; upstream and generator share the other.
    """
    if not {"weir", "nginx", "wrk"} <= bench.programs.paths.keys():
        return []
    near, alone, plan = bench.server_core, bench.generator_core, bench.plan
    trials = []
    with ExitStack() as stack:
        upstream = stack.enter_context(nginx(bench.programs["nginx"], near))
        servers: dict[str, Server] = {DIRECT: upstream}
        for name in (*PROXIES, *WITH_POLICIES):
            try:
                servers[name] = stack.enter_context(proxies.gateway(name, bench.programs, alone, upstream))
            except StartError as why:
                trials.append(Trial(CLOSED, name, 0, error=str(why)))
                _say(trials[-1])
        for rate in (None, *RATES):  # in sequence, so that compared runs are close in time
            asks = [Ask(name, server, rate) for name, server in servers.items() if rate is None or name in EVEN]
            for number, ask in rounds(asks, plan.gate_rounds if rate is None else plan.pairs, plan.seed):
                trials.append(_trial(bench, upstream, ask, number))
    return trials


def _trial(bench: Bench, upstream: Nginx, ask: Ask, number: int) -> Trial:
    seconds = bench.plan.closed_s if ask.rate_per_s is None else bench.plan.gate_s
    trial = Trial(ask.case, ask.name, number)
    command = _command(bench, ask, seconds)
    trial.command, trial.asked_s = shown(command), seconds
    try:
        pid = ask.server.process.pid
        counted, ticks, before = upstream.requests(), footprint.ticks(pid), footprint.spent(pid)
        finished = run(command, core=bench.server_core, cost=bench.programs["cost"], seconds=seconds)
        cpu_s = footprint.cpu_s(before, footprint.spent(pid))
        user, system = (after - then for after, then in zip(footprint.ticks(pid), ticks, strict=True))
        attempts = upstream.requests() - counted - upstream.own_requests
        _fill(trial, ask, finished, cpu_s, attempts)
        # Ticks are coarse; only their proportion is used.
        user_us = trial.server["cpu_us_per_request"] * user / max(user + system, 1)
        trial.server |= {"user_us": user_us, "system_us": trial.server["cpu_us_per_request"] - user_us}
        trial.server["rss_mb"] = sum(footprint.resident_mb(process) for process in footprint.family(pid))
    except (ValueError, KeyError, RuntimeError, OSError) as error:
        trial.error = trial.error or f"not measured: {type(error).__name__}: {error}"
    _say(trial)
    return trial


def _command(bench: Bench, ask: Ask, seconds: int) -> list[str]:
    url = ask.server.url + PAGE
    if ask.rate_per_s is None:
        return [str(bench.programs["wrk"]), "-t", "1", "-c", str(CONNECTIONS), "-d", f"{seconds}s", "--latency", url]
    command = [str(bench.programs["weir"]), "load", url, "-t", "1", "-r", str(ask.rate_per_s), "-d", f"{seconds}s"]
    return [*command, "--warmup", f"{WARMUP_S}s", "--format", "json"]


def _fill(trial: Trial, ask: Ask, finished: Finished, cpu_s: float, attempts: int) -> None:
    """Fill in the cost per successful response; attempts are counted by the upstream, with the warm-up."""
    if finished.status not in (0, 3):  # 3: untrusted, which the page marks
        lines = finished.stderr.strip().splitlines()
        raise ValueError(f"exit {finished.status}: {lines[-1] if lines else 'no message'}")
    load = Load("", trial.asked_s, Path(), connections=CONNECTIONS)
    if ask.rate_per_s is None:
        report = read_wrk(finished, load)
        successes, rejected = counts_of_wrk(finished.stdout)
        busy_s, asked = float(trial.asked_s), successes + rejected
    else:
        said = json.loads(finished.stdout)
        report, successes = read_weir(finished, load), said["status"].get("200", 0)
        rejected = sum(said["status"].get(status, 0) for status in REJECTED)
        # The rate is constant, so the warm-up is a proportional part.
        cpu_s *= 1 - WARMUP_S / trial.asked_s
        busy_s, asked = said["duration_s"], ask.rate_per_s * trial.asked_s
        requests = said["requests"]
        if requests["failed"] > rejected or requests["dropped"] or requests["unfinished"]:
            trial.error = f"not all requests have a response: {requests}, {said['failures']}"
    trial.requests = successes
    trial.max_rss_mb = finished.max_rss_mb
    trial.user_us_per_request = finished.user_s * 1e6 / max(successes, 1)
    trial.sys_us_per_request = finished.sys_s * 1e6 / max(successes, 1)
    trial.report = report.to_dict()
    trial.server = {
        "cpu_us_per_request": cpu_s * 1e6 / max(successes, 1),
        "busy": cpu_s / busy_s,
        "rate_per_s": successes / busy_s,
        "attempts_per_request": attempts / max(asked, 1),
        "rejected": rejected,
    }
    if not successes:
        trial.error = "no success"


def counts_of_wrk(text: str) -> tuple[int, int]:
    """Count successes and rejections; transport errors are raised. wrk prints no line for zero errors."""
    amiss = re.search(r"^\s+(Socket errors:.*)$", text, re.MULTILINE)
    if amiss:
        raise ValueError(amiss.group(1))
    responses, rejected = (
        int(found.group(1)) if (found := re.search(pattern, text)) else 0
        for pattern in (r"(\d+) requests in", r"Non-2xx or 3xx responses: (\d+)")
    )
    return responses - rejected, rejected


def _say(trial: Trial) -> None:
    trial.say(
        "{rate_per_s:>10,.0f}/s {cpu_us_per_request:8.2f} us/request of the gateway {busy:5.0%} busy,"
        " {rejected} rejected, p50 {times[p50]:.3f} p99 {times[p99]:.3f} ms"
    )
