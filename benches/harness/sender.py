"""Parts of the trials of `weir send`."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from harness.process import Finished
from harness.programs import PEERS
from harness.servers import Server, service
from harness.trial import Bench, Trial


@contextmanager
def scratch() -> Iterator[Path]:
    """Make a temporary folder on a disk; in memory, a sync would cost nothing."""
    PEERS.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="send-", dir=PEERS.parent) as folder:
        yield Path(folder)


def jobs(folder: Path, count: int) -> Path:
    """Write a file with `count` jobs."""
    path = folder / "jobs.jsonl"
    with path.open("w") as file:
        file.writelines(f'{{"id":"{number}"}}\n' for number in range(count))
    return path


def ended_after(seconds: float) -> list[str]:
    """Return the prefix of a command that ends it by SIGTERM after this time, with its own exit code."""
    return ["timeout", "--foreground", "--preserve-status", "--signal=TERM", f"{seconds}"]


def summary(finished: Finished) -> dict[str, Any]:
    """Read the JSON of a sender that exited with 0."""
    if finished.status:
        lines = (finished.stderr.strip() or finished.stdout.strip()).splitlines()
        raise ValueError(f"exit {finished.status}: {lines[-1] if lines else 'no message'}")
    return dict(json.loads(finished.stdout))


def served(bench: Bench, *args: str) -> AbstractContextManager[Server]:
    """Start `weir serve ARGS...` on the server's core."""
    return service(f"weir serve {args[0]}", [str(bench.programs["weir"]), "serve", *args], bench.server_core)


def requests_served(server: Server) -> int:
    """Read the number of requests counted by `weir serve`, including those for /metrics."""
    found = re.findall(r"^weir_http_requests_total\{[^}]*\} (\d+)", server.get("/metrics"), re.MULTILINE)
    return sum(map(int, found))


def fill(trial: Trial, finished: Finished, said: dict[str, Any]) -> None:
    """Fill in the sender's cost and report."""
    done = max(said["done"], 1)
    trial.user_us_per_request = finished.user_s * 1e6 / done
    trial.sys_us_per_request = finished.sys_s * 1e6 / done
    trial.max_rss_mb = finished.max_rss_mb
    trial.report = {key: value for key, value in said.items() if key != "per_key"}
