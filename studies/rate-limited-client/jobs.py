"""Common parts of the clients: arguments, jobs, and results."""

from __future__ import annotations

import argparse
import json
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

TTL_MS = 1000
RETRIES = 5
TIMEOUT_S = 1.0
# First line on stdout once the client takes requests.
READY = "ready"


def now_ms() -> int:
    """Return the wall clock, in whole milliseconds as in the original."""
    return int(time.time() * 1000)


@dataclass
class Job:
    """Request to deliver."""

    name: str
    created_ms: int = field(default_factory=now_ms)
    sent_ms: int | None = None
    attempts: int = 0

    def left_ms(self) -> int:
        """Return the remaining time to live."""
        return self.created_ms + TTL_MS - now_ms()

    def once_more(self) -> bool:
        """Renew the time to live; return whether another attempt is allowed."""
        self.attempts += 1
        self.created_ms = now_ms()
        return self.attempts <= RETRIES


class Results:
    """File of ended jobs, one line each, in the format of `weir send --out`."""

    def __init__(self, path: Path) -> None:
        """Create the file."""
        self._file: TextIO = path.open("w", buffering=1)
        self._lock = threading.Lock()

    def ended(self, job: Job, state: str, status: int | None = None) -> None:
        """Write a job's end; `state` is done, expired or dead_lettered."""
        self.write({"id": job.name, "state": state, "status": status, "sent_ms": job.sent_ms, "ended_ms": now_ms()})

    def write(self, line: dict[str, Any]) -> None:
        """Write a line, from any thread."""
        with self._lock:
            self._file.write(json.dumps(line) + "\n")


class Nonces:
    """Nonces that rise, close to the clock."""

    def __init__(self) -> None:
        """Start without a used nonce."""
        self._last = 0

    def next(self) -> int:
        """Return the next nonce."""
        self._last = max(self._last + 1, now_ms())
        return self._last


def arguments() -> argparse.ArgumentParser:
    """Return the arguments of all clients; requests come on stdin, a line of JSON each."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--url", required=True, help="URL of the service, up to its port")
    parser.add_argument("--keys", required=True, help="API keys, comma-separated")
    parser.add_argument("--out", required=True, type=Path, help="results file")
    return parser


def named(line: str | bytes) -> Job:
    """Return the request of a line."""
    return Job(json.loads(line)["id"])
