"""Soak test: good and bad requests for minutes, and the server's open files and memory before and after."""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from typing import Any

from harness import footprint
from harness.process import run
from harness.programs import SCRIPTS
from harness.servers import Server, StartError, service
from harness.trial import Bench, Trial, shown

CASE, SERVICE = "soak", "weir serve httpbin"
#: Short timeouts, so that unfinished heads time out during the soak.
FLAGS = ("--head-timeout", "1s", "--stall-timeout", "2s", "--idle-timeout", "5s")
SETTLING = 20  # 1/SETTLING of the requests precede the first reading of memory
CLOSING_S = 15.0
LIMIT_S = 1_800


def measure(bench: Bench) -> list[Trial]:
    """Send the requests of the plan, in two parts."""
    command = [str(bench.programs["weir"]), *SERVICE.split()[1:], *FLAGS]
    trial = Trial(CASE, SERVICE, 0)
    try:
        with service(SERVICE, command, bench.server_core) as server:
            _soak(bench, server, trial)
    except (StartError, ValueError, KeyError, OSError) as error:
        trial.error = f"{type(error).__name__}: {error}"
    print(f"{trial.case:<44} {trial.contender:<22} 0  {trial.error or trial.server}", file=sys.stderr)
    return [trial]


def _soak(bench: Bench, server: Server, trial: Trial) -> None:
    server.get("/echo")
    time.sleep(1)  # until the connection of that request is closed
    pid, settling = server.process.pid, bench.plan.soak // SETTLING
    files = footprint.open_files(pid)
    first = _send(bench, server, trial, settling, bench.plan.seed)
    _await_files(pid, files)
    settled_mb = footprint.resident_mb(pid)
    rest = _send(bench, server, trial, bench.plan.soak - settling, bench.plan.seed + 1)
    left_open = _await_files(pid, files)
    after_mb = footprint.resident_mb(pid)
    trial.requests = first["sent"] + rest["sent"]
    trial.report = {key: first[key] + rest[key] for key in first if isinstance(first[key], int)}
    for key in ("kinds", "bad_statuses"):
        trial.report[key] = dict(Counter(first[key]) + Counter(rest[key]))
    trial.server = {
        "settling": settling,
        "files_before": files,
        "files_after": left_open,
        "rss_settled_mb": settled_mb,
        "rss_after_mb": after_mb,
        "seconds": first["seconds"] + rest["seconds"],
    }
    server.get("/echo")


def _send(bench: Bench, server: Server, trial: Trial, requests: int, seed: int) -> dict[str, Any]:
    script = [sys.executable, str(SCRIPTS / "soak.py"), "--port", str(server.port)]
    script += ["--requests", str(requests), "--seed", str(seed)]
    trial.command = shown(script)
    finished = run(script, core=bench.generator_core, cost=bench.programs["cost"], seconds=LIMIT_S)
    if finished.status:
        lines = finished.stderr.strip().splitlines()
        raise ValueError(f"the sender ended with {finished.status}: {lines[-1] if lines else 'no message'}")
    return dict(json.loads(finished.stdout))


def _await_files(pid: int, expected: int) -> int:
    """Wait until the number of open files is as expected, or for CLOSING_S; return the number."""
    deadline = time.monotonic() + CLOSING_S
    while (found := footprint.open_files(pid)) != expected and time.monotonic() < deadline:
        time.sleep(0.1)
    return found
