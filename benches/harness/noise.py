"""What happens to a gate and is no overload: pauses of its process, and other callers with little time."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.process import pinned

#: What a pause of the gate's process is, in s: how often, and how long at least and at most.
PAUSES = {"20 ms five times a second": (0.2, 0.02, 0.02), "5 to 50 ms, five times a second on average": (0.2, 0.005, 0.05)}
#: Requests per second beside the measured ones, and the time that each has, in ms.
SHORT = ((200, 20), (200, 60))
DEADLINE_HEADER = "x-envoy-expected-rq-timeout-ms"


@contextmanager
def pauses(pid: int, name: str, seed: int) -> Iterator[None]:
    """Stops a process again and again, and lets it go on."""
    every, least, most = PAUSES[name]
    dice = random.Random(seed)
    done = threading.Event()

    def stop() -> None:
        while not done.wait(every if least == most else dice.expovariate(1 / every)):
            os.kill(pid, signal.SIGSTOP)
            try:
                done.wait(dice.uniform(least, most))
            finally:
                os.kill(pid, signal.SIGCONT)

    thread = threading.Thread(target=stop)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


@contextmanager
def short_calls(weir: Path, url: str, seconds: int, core: int) -> Iterator[None]:
    """Sends calls whose callers have less time than most responses take."""
    loads = [
        pinned(
            [
                str(weir), "load", url, "-t", "1", "-q", "-r", str(rate), "--arrivals", "poisson", "-d", f"{seconds}s",
                "-H", f"{DEADLINE_HEADER}: {time_ms}",
            ],
            core,
        )
        for rate, time_ms in SHORT
    ]  # fmt: skip
    running = [subprocess.Popen(load, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for load in loads]
    try:
        yield
    finally:
        for one in running:
            one.terminate()
            one.wait()
