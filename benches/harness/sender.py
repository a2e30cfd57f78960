"""What the trials of `weir send` share."""

from __future__ import annotations

import json
import re
import sys
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
    """A folder on a disk: where a sync costs nothing, a store is quick."""
    PEERS.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="send-", dir=PEERS.parent) as folder:
        yield Path(folder)


def jobs(folder: Path, count: int) -> Path:
    """A file with so many jobs."""
    path = folder / "jobs.jsonl"
    with path.open("w") as file:
        file.writelines(f'{{"id":"{number}"}}\n' for number in range(count))
    return path


def ended_after(seconds: float) -> list[str]:
    """What a command line begins with that is told to end then; its exit code is its own."""
    return ["timeout", "--foreground", "--preserve-status", "--signal=TERM", f"{seconds}"]


def summary(finished: Finished) -> dict[str, Any]:
    """What the sender says."""
    if finished.status:
        lines = (finished.stderr.strip() or finished.stdout.strip()).splitlines()
        raise ValueError(f"exit {finished.status}: {lines[-1] if lines else 'no message'}")
    return dict(json.loads(finished.stdout))


def served(bench: Bench, *args: str) -> AbstractContextManager[Server]:
    """`weir serve ARGS...` on the server's core."""
    return service(f"weir serve {args[0]}", [str(bench.programs["weir"]), "serve", *args], bench.server_core)


def requests_served(server: Server) -> int:
    """What `weir serve` has counted, these questions too."""
    found = re.findall(r"^weir_http_requests_total\{[^}]*\} (\d+)", server.get("/metrics"), re.MULTILINE)
    return sum(map(int, found))


def empty(case: str, name: str, number: int, seconds: int) -> Trial:
    """A trial that nothing is known of yet."""
    return Trial(case, name, number, "", seconds, None, 0, 0.0, 0.0, 0.0)


def fill(trial: Trial, finished: Finished, said: dict[str, Any]) -> None:
    """What the sender cost, and what it says."""
    done = max(said["done"], 1)
    trial.user_us_per_request = finished.user_s * 1e6 / done
    trial.sys_us_per_request = finished.sys_s * 1e6 / done
    trial.max_rss_mb = finished.max_rss_mb
    trial.report = {key: value for key, value in said.items() if key != "per_key"}


def say(trial: Trial, form: str) -> None:
    """A line for who watches."""
    outcome = trial.error or form.format(**trial.server)
    print(f"{trial.case:<40} {trial.contender:<22} {trial.round}  {outcome}", file=sys.stderr)
