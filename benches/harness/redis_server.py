"""Redis server for a trial: on a free port of this machine, with its files in the trial's folder."""

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

#: Durability: in memory, or an append-only file that is synced each second.
NOTHING = ("--appendonly", "no")
EVERY_SECOND = ("--appendonly", "yes", "--appendfsync", "everysec")


@dataclass(frozen=True)
class Redis:
    """Running server."""

    client: Path
    port: int

    def url(self, queue: str) -> str:
        """Return the URL of a queue."""
        return f"redis://127.0.0.1:{self.port}?queue={queue}"

    def ask(self, *commands: str) -> list[str]:
        """Send commands, and return the lines of their replies; a missing value is an empty line."""
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
        """Return the fields of INFO."""
        pairs = (line.strip().partition(":") for line in self.ask("INFO") if ":" in line)
        return {name: value for name, _, value in pairs}

    def cpu_s(self) -> float:
        """Return the CPU time since the start, of all threads."""
        info = self.info()
        return float(info["used_cpu_user"]) + float(info["used_cpu_sys"])


#: Context of a running server.
Running: TypeAlias = AbstractContextManager[Redis]


@contextmanager
def running(program: Path, folder: Path, *flags: str) -> Iterator[Redis]:
    """Start a server with these flags, until the context is left."""
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
        except ValueError:  # not listening yet
            pass
        time.sleep(0.05)
    raise StartError("redis did not start")
