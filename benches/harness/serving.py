"""Measurements of servers with `weir load`: loads, and the CPU cost of the server."""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from harness import footprint
from harness.generators import Load, read_weir
from harness.process import Finished, run
from harness.servers import Server, StartError, nginx, service
from harness.trial import Bench, Trial, rounds, shown

NGINX = "nginx"
#: Programs by name in the tables.
PEERS = {"civetweb": "civetweb-functions", "libmicrohttpd": "microhttpd-functions"}
#: Warm-up of open loops, which open their connections at the beginning: that cost is not measured here.
WARMUP_S = 1


@dataclass(frozen=True)
class Ask:
    """Load on a route."""

    case: str
    path: str
    connections: int | None = None
    rate_per_s: int | None = None
    keep_alive: bool = True
    body: str = ""
    statuses: tuple[str, ...] = ("200",)  # of counted responses

    def command(self, weir: Path, url: str, seconds: int) -> list[str]:
        """Make the command line."""
        command = [str(weir), "load", url + self.path, "-t", "1", "--format", "json", "-d", f"{seconds}s"]
        if self.connections is not None:
            command += ["-c", str(self.connections)]
        if self.rate_per_s is not None:
            command += ["-r", str(self.rate_per_s), "--warmup", f"{WARMUP_S}s"]
        if not self.keep_alive:
            command.append("--no-keepalive")
        if self.body:
            command += ["-b", self.body]
        return command


@dataclass(frozen=True)
class Contender:
    """Server with a load."""

    name: str
    server: Server
    ask: Ask


class Room:
    """Servers that run until the context is left; one that does not start becomes a trial with the error."""

    def __init__(self, bench: Bench) -> None:
        """Make a room without servers."""
        self._bench = bench
        self._stack = ExitStack()
        self._contenders: list[Contender] = []
        self._absent: list[Trial] = []

    def __enter__(self) -> Room:
        """Return the room."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop all servers."""
        self._stack.close()

    def add(self, name: str, flags: Iterable[str], *asks: Ask) -> None:
        """Start a server for these loads: nginx, a peer, or `weir serve ...` with its flags."""
        try:
            server = self._stack.enter_context(self._server(name, list(flags)))
        except StartError as why:
            ask = asks[0]
            absent = Trial(ask.case, name, 0, connections=ask.connections, error=str(why))
            _say(absent)
            self._absent.append(absent)
        else:
            self._contenders += [Contender(name, server, ask) for ask in asks]

    def measure(self, seconds: int) -> list[Trial]:
        """Measure interleaved rounds of all contenders."""
        plan, trials = self._bench.plan, self._absent
        for number, contender in rounds(self._contenders, plan.pairs, plan.seed):
            trial = _trial(self._bench, contender, number, seconds)
            _say(trial)
            trials.append(trial)
        return trials

    def _server(self, name: str, flags: list[str]) -> AbstractContextManager[Server]:
        programs, core = self._bench.programs, self._bench.server_core
        program = PEERS.get(name, name.split(maxsplit=1)[0])
        if program not in programs:
            raise StartError("not on this machine")
        if name == NGINX:
            return nginx(programs[program], core)
        return service(name, [str(programs[program]), *name.split()[1:], *flags], core)


def _trial(bench: Bench, contender: Contender, number: int, seconds: int) -> Trial:
    ask, server = contender.ask, contender.server
    command = ask.command(bench.programs["weir"], server.url, seconds)
    trial = Trial(ask.case, contender.name, number, shown(command), seconds, ask.connections)
    try:
        before = footprint.spent(server.process.pid)
        finished = run(command, core=bench.generator_core, cost=bench.programs["cost"], seconds=seconds)
        cpu_s = footprint.cpu_s(before, footprint.spent(server.process.pid))
        if ask.rate_per_s is not None:
            # The rate is constant, so the warm-up is a proportional part.
            cpu_s *= 1 - WARMUP_S / seconds
        _fill(trial, ask, finished, cpu_s)
    except (ValueError, KeyError, RuntimeError, OSError) as error:
        trial.error = f"not measured: {type(error).__name__}: {error}"
    return trial


def _fill(trial: Trial, ask: Ask, finished: Finished, cpu_s: float) -> None:
    if finished.status:
        lines = finished.stderr.strip().splitlines()
        trial.error = f"exit {finished.status}: {lines[-1] if lines else 'no message'}"
        return
    said: dict[str, Any] = json.loads(finished.stdout)
    responses = sum(count for status, count in said["status"].items() if status in ask.statuses)
    trial.requests = responses
    trial.user_us_per_request = finished.user_s * 1e6 / max(responses, 1)
    trial.sys_us_per_request = finished.sys_s * 1e6 / max(responses, 1)
    trial.max_rss_mb = finished.max_rss_mb
    trial.report = read_weir(finished, Load("", trial.asked_s, Path())).to_dict()
    trial.server = {
        "cpu_us_per_request": cpu_s * 1e6 / max(responses, 1),
        "cpu_us_per_mb": cpu_s * 1e12 / max(said["bytes"]["body_in"], 1),
        "busy": cpu_s / said["duration_s"],
        "generator_busy": said["cpu_utilization"],  # of its only thread
        "rate_per_s": responses / said["duration_s"],
        "without": said["requests"]["total"] + said["requests"]["unfinished"] - responses,
        "max_ms": said["response_ms"]["max"],
        "service_ms": {key: value for key, value in said["service_ms"].items() if key.startswith("p")},
    }
    if not responses:
        trial.error = f"no response with {' or '.join(ask.statuses)}, but {said['status'] or said['failures']}"


def _say(trial: Trial) -> None:
    trial.say("{rate_per_s:>10,.0f}/s {cpu_us_per_request:8.2f} us/request of the server {busy:5.0%} busy")
