"""A Redis server for one trial: on a free port of this machine, with its files in the trial's folder."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from harness.process import environment
from harness.servers import START_LIMIT_S, StartError, free_port

#: What it does with what it is given.
NOTHING = ("--appendonly", "no")
EVERY_SECOND = ("--appendonly", "yes", "--appendfsync", "everysec")


@dataclass(frozen=True)
class Redis:
    """A server that answers."""

    client: Path
    port: int

    def url(self, queue: str) -> str:
        """The address of a queue on it."""
        return f"redis://127.0.0.1:{self.port}?queue={queue}"

    def ask(self, *commands: str) -> list[str]:
        """What it says to them, line by line; a value that is not there is an empty line."""
        asked = subprocess.run(
            [str(self.client), "-p", str(self.port)],
            input="\n".join(commands) + "\n",
            capture_output=True,
            text=True,
            check=False,
        )
        if asked.returncode:
            raise ValueError(f"redis-cli: {asked.stderr.strip() or asked.stdout.strip()}")
        return asked.stdout.splitlines()

    def info(self) -> dict[str, str]:
        """What it says of itself."""
        pairs = (line.strip().partition(":") for line in self.ask("INFO") if ":" in line)
        return {name: value for name, _, value in pairs}

    def cpu_s(self) -> float:
        """What it has spent since it began, on its thread and on those that help it."""
        info = self.info()
        return float(info["used_cpu_user"]) + float(info["used_cpu_sys"])


#: A server until it is left.
Running: TypeAlias = AbstractContextManager[Redis]


@contextmanager
def running(program: Path, folder: Path, *flags: str) -> Iterator[Redis]:
    """One with these flags, until the context is left."""
    port = free_port()
    command = [str(program), "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(folder), *flags]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=environment())
    try:
        redis = Redis(program.with_name("redis-cli"), port)
        _await(redis, process)
        yield redis
    finally:
        process.terminate()
        try:
            process.wait(timeout=START_LIMIT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _await(redis: Redis, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_LIMIT_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            if redis.ask("PING") == ["PONG"]:
                return
        except ValueError:  # it does not listen yet
            pass
        time.sleep(0.05)
    raise StartError("redis did not start")
