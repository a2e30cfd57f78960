"""Several `weir send` processes at the same time, and their results."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from harness import footprint
from harness.process import environment
from harness.trial import shown

END_S = 60.0


@dataclass(frozen=True)
class Sender:
    """Process of `weir send`."""

    number: int
    process: subprocess.Popen[bytes]
    out: Path  # results
    said: Path  # summary
    errors: Path

    def complaint(self) -> str:
        """Return the last line of stderr, or the exit code."""
        lines = self.errors.read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else f"exit {self.process.returncode}"


class Senders:
    """Started senders; those that still run are killed when the context is left."""

    def __init__(self, folder: Path, command: Callable[[int, Path], list[str]]) -> None:
        """Start no sender yet; `command` makes a command line from the number and the results file of a sender."""
        self._folder, self._command = folder, command
        self.every: list[Sender] = []
        self.alive: list[Sender] = []

    def __enter__(self) -> Senders:
        """Return the senders."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Kill those that still run."""
        for sender in list(self.alive):
            self.kill(sender)

    def start(self) -> Sender:
        """Start another sender."""
        number = len(self.every)
        out, said, errors = (self._folder / f"{name}-{number}" for name in ("results", "said", "errors"))
        with said.open("wb") as stdout, errors.open("wb") as stderr:
            process = subprocess.Popen(
                self._command(number, out), stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr, env=environment()
            )
        sender = Sender(number, process, out, said, errors)
        self.every.append(sender)
        self.alive.append(sender)
        return sender

    def shown(self) -> str:
        """Return the command line of the first sender, for the page."""
        return shown(self._command(0, self.every[0].out))

    def kill(self, sender: Sender) -> float:
        """Kill a sender; return the Unix time in seconds."""
        sender.process.kill()
        at_s = time.time()
        sender.process.wait()
        self.alive.remove(sender)
        return at_s

    def cpu_s(self) -> float:
        """Return the CPU time of running senders since their start."""
        return sum(footprint.cpu_s({}, footprint.spent(sender.process.pid)) for sender in self.alive)

    def end(self) -> list[dict[str, Any]]:
        """Terminate all running senders, and return their summaries."""
        for sender in self.alive:
            sender.process.terminate()
        summaries = []
        for sender in list(self.alive):
            try:
                status = sender.process.wait(timeout=END_S)
            except subprocess.TimeoutExpired:
                raise ValueError(f"a sender did not end within {END_S:.0f} s") from None
            self.alive.remove(sender)
            if status:
                raise ValueError(f"exit {status}: {sender.complaint()}")
            summaries.append(dict(json.loads(sender.said.read_text())))
        return summaries


@dataclass(frozen=True)
class Sent:
    """Delivered job, from its line in the results."""

    by: int  # number of the sender
    job: str
    key: str
    at_s: float  # Unix time of the send, in seconds
    maybe_sent: bool


class Results:
    """Delivered jobs of all senders, as far as their files have been read."""

    def __init__(self) -> None:
        """Make an empty collection."""
        self.sent: list[Sent] = []
        self._read: dict[int, int] = {}

    def look(self, senders: Iterable[Sender]) -> None:
        """Read the complete lines added since the last call."""
        for sender in senders:
            if not sender.out.exists():
                continue
            with sender.out.open("rb") as file:
                file.seek(self._read.get(sender.number, 0))
                text = file.read()
            whole = text[: text.rfind(b"\n") + 1]
            self._read[sender.number] = self._read.get(sender.number, 0) + len(whole)
            self.sent += (_sent(sender.number, json.loads(line)) for line in whole.splitlines())


def _sent(by: int, line: dict[str, Any]) -> Sent:
    if line["state"] != "done":
        raise ValueError(f"a job was not delivered: {line}")
    return Sent(by, line["id"], line["last_key"], line["sent_ms"] / 1000, line.get("maybe_sent", False))
