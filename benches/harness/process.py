"""Runs of a command on a core, with their cost."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO

#: Time after the expected duration at which a command is killed.
GRACE_S = 60


@dataclass(frozen=True)
class Finished:
    """Command that has ended, with any status."""

    status: int
    stdout: str
    stderr: str
    user_s: float
    sys_s: float
    max_rss_mb: float

    @property
    def cpu_s(self) -> float:
        """CPU time of the command and of the children that it waited for."""
        return self.user_s + self.sys_s


def pinned(command: list[str], core: int | None) -> list[str]:
    """Return the command on one core; None: on all."""
    return command if core is None else ["taskset", "-c", str(core), *command]


def run(
    command: list[str], *, core: int | None, cost: Path, seconds: float, stdin: IO[bytes] | int | None = None
) -> Finished:
    """Run `command` on `core`, with an expected duration of `seconds`; through `cost`, for its true memory."""
    with tempfile.TemporaryDirectory() as scratch:
        bill = Path(scratch) / "cost.json"
        wrapped = pinned([str(cost), "--to", str(bill), "--", *command], core)
        status, stdout, stderr = _wait(wrapped, seconds + GRACE_S, stdin)
        paid = json.loads(bill.read_text()) if bill.exists() else {}
    return Finished(
        status=status,
        stdout=stdout,
        stderr=stderr,
        user_s=paid.get("user_s", 0.0),
        sys_s=paid.get("sys_s", 0.0),
        max_rss_mb=paid.get("max_rss_kb", 0) / 1024,
    )


def _wait(command: list[str], limit_s: float, stdin: IO[bytes] | int | None) -> tuple[int, str, str]:
    with subprocess.Popen(
        command,
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        env=environment(),
        start_new_session=True,
    ) as process:
        try:
            stdout, stderr = process.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            stdout, stderr = process.communicate()
            return 124, stdout, f"{stderr}\nended after {limit_s:.0f} s"
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
        return process.returncode, stdout, stderr


def environment() -> dict[str, str]:
    """Return this environment without proxies, since all traffic is local."""
    return {key: value for key, value in os.environ.items() if not key.lower().endswith("_proxy")}
