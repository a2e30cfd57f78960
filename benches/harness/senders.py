"""Several `weir send` at once, and what they write."""

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
    """One of them."""

    number: int
    process: subprocess.Popen[bytes]
    out: Path  # its results
    said: Path  # its summary
    errors: Path

    def complaint(self) -> str:
        """The last that it said on stderr."""
        lines = self.errors.read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else f"exit {self.process.returncode}"


class Senders:
    """Those that were started; whoever still runs is killed when the context is left."""

    def __init__(self, folder: Path, command: Callable[[int, Path], list[str]]) -> None:
        """None yet. `command` makes the command line of one, by its number, that writes its results there."""
        self._folder, self._command = folder, command
        self.every: list[Sender] = []
        self.alive: list[Sender] = []

    def __enter__(self) -> Senders:
        """Themselves."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave none behind."""
        for sender in list(self.alive):
            self.kill(sender)

    def start(self) -> Sender:
        """One more."""
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
        """The command line of the first, for the page."""
        return shown(self._command(0, self.every[0].out))

    def kill(self, sender: Sender) -> float:
        """Kill it; says when that was, in seconds since 1970."""
        sender.process.kill()
        at_s = time.time()
        sender.process.wait()
        self.alive.remove(sender)
        return at_s

    def cpu_s(self) -> float:
        """What those that run have spent since they began."""
        return sum(footprint.cpu_s({}, footprint.spent(sender.process.pid)) for sender in self.alive)

    def end(self) -> list[dict[str, Any]]:
        """Have all end in good order; what they say."""
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
    """A job that was delivered, as its line says."""

    by: int  # the sender's number
    job: str
    key: str
    at_s: float  # sent, in seconds since 1970
    maybe_sent: bool


class Results:
    """What all of them have delivered, as far as their files have been read."""

    def __init__(self) -> None:
        """Nothing yet."""
        self.sent: list[Sent] = []
        self._read: dict[int, int] = {}

    def look(self, senders: Iterable[Sender]) -> None:
        """Read the lines that have been added since the last time, and are whole."""
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
