"""Programs that tests start: each heeds Ctrl-C, and none outlives the tests."""

import ctypes
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

TIMEOUT_S = 60
_LIBC = ctypes.CDLL(None)
_PR_SET_PDEATHSIG = 1


def _prepare() -> None:
    # Tests that run in the background ignore Ctrl-C, and children inherit that.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    # Tests that are killed can end nothing.
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def redis_server() -> str:
    """Path of redis-server. Without it the test is skipped; in continuous integration (``CI`` is set) it fails."""
    program = shutil.which("redis-server")
    if program is None and os.environ.get("CI"):
        pytest.fail("no redis-server; install redis-server (CI is set, so its tests must not be skipped)")
    if program is None:
        pytest.skip("no redis-server")
    return program


def start(
    *command: str,
    env: Mapping[str, str] | None = None,
    stdin: int | None = subprocess.DEVNULL,
    pass_fds: tuple[int, ...] = (),
    cwd: Path | None = None,
    silent: bool = False,
) -> "subprocess.Popen[str]":
    """Start a program; standard output and error are pipes, or nothing if it is to be silent."""
    to = subprocess.DEVNULL if silent else subprocess.PIPE
    return subprocess.Popen(
        command,
        stdin=stdin,
        stdout=to,
        stderr=to,
        text=True,
        env=env,
        cwd=cwd,
        pass_fds=pass_fds,
        preexec_fn=_prepare,  # noqa: PLW1509  nothing here holds a lock that it needs
    )


@contextmanager
def started(
    *command: str,
    env: Mapping[str, str] | None = None,
    stdin: int | None = subprocess.DEVNULL,
    cwd: Path | None = None,
    silent: bool = False,
) -> Iterator["subprocess.Popen[str]"]:
    """Start a program, and kill it at the end of the block if it still runs."""
    with start(*command, env=env, stdin=stdin, cwd=cwd, silent=silent) as process:
        try:
            yield process
        finally:
            process.kill()


def finished(
    *command: str, timeout_s: float = TIMEOUT_S, cwd: Path | None = None
) -> "subprocess.CompletedProcess[str]":
    """Run a program to its end."""
    with started(*command, cwd=cwd) as process:
        out, err = process.communicate(timeout=timeout_s)
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def child(script: str, *, warn: str = "ignore") -> "subprocess.CompletedProcess[str]":
    """Run a script in a Python of its own."""
    return finished(sys.executable, "-W", warn, "-c", script)


def weir(*args: str, timeout_s: float = TIMEOUT_S) -> "subprocess.CompletedProcess[str]":
    """Run the command ``weir``: what ``python -m weir`` becomes, without an interpreter before it."""
    return finished(str(binary()), *args, timeout_s=timeout_s)


def binary() -> Path:
    """Where the command is installed."""
    return Path(sys.executable).with_name("weir")
