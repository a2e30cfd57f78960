"""Good calls that `weir gate` loses without overload, and those that Envoy and Caddy lose; the target is zero.

The host stalls, other callers have shorter deadlines than responses take, uploads break off, or other callers take
slots and do not read. The upstream is healthy.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness import noise
from harness.envoy import Envoy
from harness.generators import Load, read_weir, read_wrk
from harness.process import Finished, run
from harness.proxies import CADDY_POLICED, ENVOY_GUARDED, ENVOY_PINNED, GATEWAYS, available, gate, gateway
from harness.servers import Server, StartError, nginx, service
from harness.slow_streams import slow_streams
from harness.trial import Bench, Trial, rounds, shown

GATE, UNLIMITED, DIRECT = "weir gate", "weir gate, limit = none", "no gateway"
SHEDDING = "weir gate, shed_culprits"
#: Keys of an upstream by contender.
KEYS = {UNLIMITED: 'concurrency_limit = "none"', SHEDDING: "shed_culprits = {}"}
PEERS = (ENVOY_GUARDED, ENVOY_PINNED, CADDY_POLICED)
#: Peers that know the deadlines of callers.
WITH_DEADLINES = (ENVOY_GUARDED,)
CONNECTIONS = 100
QUIET, BURNER = "nothing else", "the gate's core is taken for 20 ms five times a second"
STOPS = {
    "the gate is stopped for 20 ms five times a second": (0.02, 0.02),
    "the gate is stopped for 5 to 50 ms five times a second": (0.005, 0.05),
}
GOOD_PER_S = 200
#: Service of 60 slots, loaded to half of its capacity.
MIXED_WORK = ("--mix", "good=1", "--delay", "10ms..90ms", "--slots", "60", "--max-queue", "1000000")
#: Calls of other callers per second, and their deadline in ms.
SHORT = tuple((100, time_ms) for time_ms in (20, 30, 45, 60))
DEADLINE_HEADER = "x-envoy-expected-rq-timeout-ms"
MIXED = "200/s of good calls, 400/s of others with 20 to 60 ms to live"
#: Good calls and broken uploads per second.
UPLOADS = {
    f"{good}/s of good calls, {broken}/s of broken uploads": (good, broken) for good, broken in ((10, 10), (200, 100))
}
UPLOAD_HOSTS = 2
#: Callers that hold slots for nothing: streams of one connection that do not read, and deadlines of 1 ms.
SLOW_STREAMS, SLOW_LIMIT = 250, 200
STREAMS = f"{GOOD_PER_S}/s of good calls, a connection with {SLOW_STREAMS} streams that do not read"
TINY_CONNECTIONS, TINY_MS = 6, 1
TINY = f"{GOOD_PER_S}/s of good calls, {TINY_CONNECTIONS} connections with deadlines of {TINY_MS} ms"
TINY_WORK = ("--mix", "good=1", "--delay", "30ms", "--slots", "100000")
HOLDERS = (STREAMS, TINY)
#: Contenders of each disturbance beside `weir gate`, if their programs are on this machine.
BESIDE: dict[str, tuple[str, ...]] = {
    **dict.fromkeys((QUIET, BURNER), PEERS),
    **dict.fromkeys((*STOPS, *UPLOADS), (ENVOY_GUARDED, CADDY_POLICED)),
    **dict.fromkeys((MIXED, TINY), WITH_DEADLINES),
}
POLL_S = 0.1


@dataclass(frozen=True)
class Ask:
    """Good calls with a disturbance."""

    case: str
    name: str
    seconds: int


def closed_case(noise_: str, minutes: float = 0) -> str:
    """Return the name of a closed loop in the tables."""
    long = f", {minutes:g} min" if minutes else ""
    return f"{CONNECTIONS} connections, {noise_}{long}"


def measure(bench: Bench) -> list[Trial]:
    """Measure closed loops with pauses, mixed deadlines and broken uploads; then the long runs of `--minutes`."""
    if "weir" not in bench.programs:
        return []
    plan = bench.plan
    closed = [Ask(closed_case(name), GATE, plan.harm_s) for name in (QUIET, BURNER, *STOPS)]
    closed += [Ask(closed_case(name), SHEDDING, plan.harm_s) for name in (QUIET, BURNER, *STOPS)]
    closed += [Ask(closed_case(name), DIRECT, plan.harm_s) for name in (QUIET, BURNER)]
    good = [Ask(MIXED, name, plan.harm_s) for name in (GATE, SHEDDING, UNLIMITED)]
    good += [Ask(case, name, plan.harm_s) for case in (*UPLOADS, *HOLDERS) for name in (GATE, SHEDDING)]
    peers = [
        Ask(closed_case(case) if case in (QUIET, BURNER, *STOPS) else case, name, plan.harm_s)
        for case, names in BESIDE.items()
        for name in available(names, bench.programs)
    ]
    asks = rounds([*closed, *good, *peers], plan.harm_rounds, plan.seed)
    trials = [_trial(bench, ask, number) for number, ask in asks]
    if plan.harm_min:
        long = [Ask(closed_case(name, plan.harm_min), GATE, round(60 * plan.harm_min)) for name in (QUIET, BURNER)]
        trials += [_trial(bench, ask, 0) for ask in long]
    return trials


def _trial(bench: Bench, ask: Ask, number: int) -> Trial:
    trial = Trial(ask.case, ask.name, number, asked_s=ask.seconds)
    parts = {MIXED: _mixed, STREAMS: _streams, TINY: _tiny, **dict.fromkeys(UPLOADS, _uploads)}
    part = parts.get(ask.case, _closed)
    try:
        with ExitStack() as stack:
            part(bench, ask, trial, stack)
        trial.requests = trial.server["calls"]
    except (StartError, ValueError, KeyError, RuntimeError, OSError) as error:
        trial.error = f"not measured: {type(error).__name__}: {error}"
    outcome = trial.error or "{calls:,} calls, {rejected} rejected, {failed} failed".format(**trial.server)
    print(f"{trial.case:<70} {trial.contender:<24} {trial.round}  {outcome}", file=sys.stderr)
    return trial


# --- The parts


def _closed(bench: Bench, ask: Ask, trial: Trial, stack: ExitStack) -> None:
    """Run nginx and wrk on one core, the gate on the other, and the disturbance of the case."""
    upstream = stack.enter_context(nginx(bench.programs["nginx"], bench.server_core))
    server: Server = upstream
    if ask.name == GATE:
        flags = ("--upstream", upstream.url.rstrip("/"))
        server = stack.enter_context(gate(ask.name, bench.programs["weir"], bench.generator_core, *flags))
    elif ask.name == SHEDDING:
        server = _configured(bench, stack, ask.name, [upstream], "")
    elif ask.name in PEERS:
        server = stack.enter_context(gateway(ask.name, bench.programs, bench.generator_core, upstream))
    for name, (shortest_s, longest_s) in STOPS.items():
        if ask.case == closed_case(name):
            seed = bench.plan.seed + trial.round
            pid = server.process.pid
            stack.enter_context(noise.stalls(pid, shortest_s=shortest_s, longest_s=longest_s, seed=seed))
    if BURNER in ask.case:
        stack.enter_context(noise.burner(bench.generator_core))
    command = [str(bench.programs["wrk"]), "-t", "1", "-c", str(CONNECTIONS), "-d", f"{ask.seconds}s", "--latency"]
    finished = _run(bench, trial, [*command, server.url])
    trial.report = read_wrk(finished, Load("", ask.seconds, Path())).to_dict()
    responses = trial.report.get("requests", 0)
    errors = sum(map(int, re.findall(r"\d+", "".join(re.findall(r"Socket errors:(.*)", finished.stdout)))))
    rejected = sum(map(int, re.findall(r"Non-2xx or 3xx responses: (\d+)", finished.stdout)))
    trial.server = {"calls": responses + errors, "rejected": rejected, "failed": errors}
    if responses == rejected:
        raise ValueError("no call succeeded")


def _mixed(bench: Bench, ask: Ask, trial: Trial, stack: ExitStack) -> None:
    """Make good calls beside others with shorter deadlines than most responses take."""
    command = [str(bench.programs["weir"]), "serve", "work", "--seed", str(bench.plan.seed + trial.round), *MIXED_WORK]
    upstream = stack.enter_context(service("weir serve work", command, bench.server_core))
    server = _configured(bench, stack, ask.name, [upstream], "")
    url = server.url + "api/work"
    for rate_per_s, time_ms in SHORT:
        headers = [f"{DEADLINE_HEADER}: {time_ms}"]
        stack.enter_context(noise.neighbour(bench.programs["weir"], url, rate_per_s=rate_per_s, headers=headers))
    _good(bench, trial, url, GOOD_PER_S)


def _uploads(bench: Bench, ask: Ask, trial: Trial, stack: ExitStack) -> None:
    """Make good calls to two hosts, beside uploads that break off or have invalid framing."""
    good_per_s, broken_per_s = UPLOADS[ask.case]
    command = [str(bench.programs["weir"]), "serve", "httpbin"]
    hosts = [
        stack.enter_context(service("weir serve httpbin", command, bench.server_core)) for _ in range(UPLOAD_HOSTS)
    ]
    server = _configured(bench, stack, ask.name, hosts, "breaker = {}")
    seed = bench.plan.seed + trial.round
    uploads = stack.enter_context(noise.broken_uploads(server.port, per_s=broken_per_s, seed=seed))
    with _protected(server) as seen:
        _good(bench, trial, server.url + "static?bytes=1024", good_per_s)
    trial.server |= {**seen, "broken": len(uploads.spans)}
    if not uploads.spans:
        raise ValueError("no upload was sent")


def _streams(bench: Bench, ask: Ask, trial: Trial, stack: ExitStack) -> None:
    """Make good calls beside a connection of HTTP/2 whose streams do not read."""
    command = [str(bench.programs["weir"]), "serve", "httpbin"]
    upstream = stack.enter_context(service("weir serve httpbin", command, bench.server_core))
    server = _configured(bench, stack, ask.name, [upstream], f"max_in_flight = {SLOW_LIMIT}", deadline="1h")
    url = server.url + "static?bytes=1024"
    server.get("/static?bytes=1")
    stack.enter_context(slow_streams(server.port, "/static?bytes=10000000", streams=SLOW_STREAMS))
    _good(bench, trial, url, GOOD_PER_S)


def _tiny(bench: Bench, ask: Ask, trial: Trial, stack: ExitStack) -> None:
    """Make good calls beside callers without a pause whose deadlines are shorter than any response takes."""
    weir = str(bench.programs["weir"])
    command = [weir, "serve", "work", "--seed", str(bench.plan.seed + trial.round), *TINY_WORK]
    upstream = stack.enter_context(service("weir serve work", command, bench.server_core))
    server = _configured(bench, stack, ask.name, [upstream], "")
    url = server.url + "api/work"
    for _ in range(TINY_CONNECTIONS):
        headers = [f"{DEADLINE_HEADER}: {TINY_MS}"]
        # More than one connection can make with a response each 30 ms: it never waits for its next call.
        stack.enter_context(noise.neighbour(bench.programs["weir"], url, rate_per_s=100, headers=headers))
    _good(bench, trial, url, GOOD_PER_S)


def _configured(
    bench: Bench, stack: ExitStack, name: str, upstreams: list[Server], more: str, *, deadline: str = "1s"
) -> Server:
    """Start a gate in front of these hosts, with `more` in its configuration, or a peer."""
    if name in GATEWAYS and name != GATE:
        return stack.enter_context(gateway(name, bench.programs, bench.generator_core, *upstreams))
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="weir-harm-")))
    config = folder / "gate.toml"
    config.write_text(f"""
[upstreams.service]
urls = {json.dumps([upstream.url.rstrip("/") for upstream in upstreams])}
{KEYS.get(name, "")}
{more}

[[routes]]
match = {{ path = "/{{*rest}}" }}
upstream = "service"
policy = {{ deadline = "{deadline}" }}
""")
    weir, core = bench.programs["weir"], bench.generator_core
    return stack.enter_context(gate(name, weir, core, "--config", str(config)))


def _good(bench: Bench, trial: Trial, url: str, per_s: int) -> None:
    """Make good calls at Poisson times, and count them."""
    seconds = trial.asked_s
    command = [str(bench.programs["weir"]), "load", url, "-t", "1", "--format", "json", "-r", str(per_s)]
    command += ["--arrivals", "poisson", "-d", f"{seconds}s", "--seed", str(trial.round)]
    finished = _run(bench, trial, command)
    trial.report = read_weir(finished, Load("", seconds, Path())).to_dict()
    said: dict[str, Any] = json.loads(finished.stdout)
    calls = said["requests"]["total"] + said["requests"]["unfinished"] + said["requests"]["dropped"]
    rejected = said["status"].get("503", 0) + said["status"].get("429", 0)
    trial.server = {"calls": calls, "rejected": rejected, "failed": calls - said["status"].get("200", 0) - rejected}


def _run(bench: Bench, trial: Trial, command: list[str]) -> Finished:
    trial.command = shown(command)
    finished = run(command, core=bench.server_core, cost=bench.programs["cost"], seconds=trial.asked_s)
    # 3: the run is untrusted, or no call succeeded; the tables show this.
    if finished.status not in (0, 3):
        lines = finished.stderr.strip().splitlines()
        raise ValueError(f"exit {finished.status}: {lines[-1] if lines else 'no message'}")
    return finished


@contextmanager
def _protected(server: Server) -> Iterator[dict[str, int]]:
    """Count the readings with a host ejected, and those with the breaker open, which `weir gate` alone has."""
    seen = (
        {"ejected": 0, "opened": 0}
        if server.name in (GATE, SHEDDING)
        else {"ejected": 0}
        if isinstance(server, Envoy)
        else {}
    )
    done = threading.Event()

    def look() -> None:
        while seen and not done.wait(POLL_S):
            if isinstance(server, Envoy):
                seen["ejected"] += any(server.stats("outlier_detection.ejections_active$").values())
                continue
            text = server.get("/metrics")
            seen["ejected"] += bool(re.search(r"^weir_gate_host_ejected\{[^}]*\} [^0]", text, re.MULTILINE))
            seen["opened"] += bool(re.search(r"^weir_gate_breaker_open\{[^}]*\} [^0]", text, re.MULTILINE))

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield seen
    finally:
        done.set()
        thread.join()
