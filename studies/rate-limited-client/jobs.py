"""What the clients share: what they are told, what they send, and what they say of it."""

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
# The first line on stdout: requests may come.
READY = "ready"


def now_ms() -> int:
    """The wall clock, in whole milliseconds as the original has them."""
    return int(time.time() * 1000)


@dataclass
class Job:
    """A request that is to be delivered."""

    name: str
    created_ms: int = field(default_factory=now_ms)
    sent_ms: int | None = None
    tries: int = 0

    def left_ms(self) -> int:
        """So long it is of use."""
        return self.created_ms + TTL_MS - now_ms()

    def once_more(self) -> bool:
        """Renews its time, unless that was done too often."""
        self.tries += 1
        self.created_ms = now_ms()
        return self.tries <= RETRIES


class Book:
    """A line per job that has come to an end, in the words of `weir send --out`."""

    def __init__(self, path: Path) -> None:
        """Begin a file."""
        self._file: TextIO = path.open("w", buffering=1)
        self._lock = threading.Lock()

    def ended(self, job: Job, state: str, status: int | None = None) -> None:
        """`state` is done, expired, or graveyard."""
        self.write({"id": job.name, "state": state, "status": status, "sent_ms": job.sent_ms, "ended_ms": now_ms()})

    def write(self, line: dict[str, Any]) -> None:
        """From any thread."""
        with self._lock:
            self._file.write(json.dumps(line) + "\n")


class Nonces:
    """Greater each time, and close to the clock."""

    def __init__(self) -> None:
        """None was used yet."""
        self._last = 0

    def next(self) -> int:
        """The next one."""
        self._last = max(self._last + 1, now_ms())
        return self._last


def arguments() -> argparse.ArgumentParser:
    """What all clients are told; requests come on stdin, a line of JSON each."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--url", required=True, help="of the exchange, up to its port")
    parser.add_argument("--keys", required=True, help="with commas between")
    parser.add_argument("--out", required=True, type=Path, help="the results")
    return parser


def named(line: str | bytes) -> Job:
    """The request of a line."""
    return Job(json.loads(line)["id"])
