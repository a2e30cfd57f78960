"""Noise: disturbances of shared machines and networks, as context managers.

- ``stalls(pid)``: a process stops for 5 to 50 ms, five times a second;
- ``burner(core)``: a neighbour uses a core for 20 of every 200 ms, or all of the time;
- ``neighbour(weir, url, rate_per_s=...)``: another client uses the same key or upstream;
- ``broken_uploads(port)``: requests with incomplete or invalid bodies, ten a second;
- ``relay(port)``: a proxy for a local service, with delays and three kinds of outages;
- ``network(delay_ms=..., loss=...)``: a network namespace whose loopback delays and loses packets.

Separate processes make the noise (``noise_process.py``), so that it does not wait for the interpreter of the
measurement. Each ends when its standard input closes, and undoes its changes, also when the measurement fails or is
killed. Lengths and gaps are random from a seed; their times depend on the machine, so each noise returns its periods.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

#: Time until a noise process that does not end is killed.
GRACE_S = 5
PROCESS = Path(__file__).with_name("noise_process.py")


class UnavailableError(Exception):
    """Noise that this machine does not allow; the message is the reason."""


@dataclass
class Happened:
    """Periods of a noise; complete once its context is left.

    Attributes:
        spans: Start and end of each, in seconds of ``time.monotonic()``, added at its end.
    """

    spans: list[tuple[float, float]] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        """Total length in seconds."""
        return sum(end - begin for begin, end in self.spans)


@contextmanager
def stalls(
    pid: int, *, per_s: float = 5, shortest_s: float = 0.005, longest_s: float = 0.05, seed: int = 1
) -> Iterator[Happened]:
    """Stall the process `pid`: SIGSTOP, and SIGCONT after a time that is uniform between the two lengths.

    Args:
        pid: Process ID; the stalls end with the process.
        per_s: Mean number of stalls per second of running; the gaps are exponential.
        shortest_s: Minimum length.
        longest_s: Maximum length.
        seed: Seed of lengths and gaps.
    """
    with _happens("stall", pid, per_s, shortest_s, longest_s, seed) as happened:
        yield happened


@contextmanager
def burner(core: int, *, busy_s: float = 0.02, period_s: float = 0.2) -> Iterator[Happened]:
    """Take a core for `busy_s` out of every `period_s`; all of the time when they are equal."""
    with _happens("burn", core, busy_s, period_s) as happened:
        yield happened


@dataclass
class Use:
    """Load of a neighbour; complete once its context is left.

    Attributes:
        run: Its run, in the format of ``weir load --format json``.
    """

    run: dict[str, Any] = field(default_factory=dict)


@contextmanager
def neighbour(weir: Path, url: str, *, rate_per_s: float, headers: Sequence[str] = ()) -> Iterator[Use]:
    """Send `rate_per_s` requests to `url` beside the measurement, as another user of the key or of the upstream."""
    use = Use()
    command = [str(weir), "load", url, "-r", str(rate_per_s), "-d", "1h", "-t", "1", "--format", "json", "-q"]
    for header in headers:
        command += ["-H", header]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            yield use
            process.send_signal(signal.SIGINT)
            out, _ = process.communicate(timeout=GRACE_S)
            use.run = json.loads(out)
        finally:
            process.kill()


@contextmanager
def broken_uploads(port: int, *, per_s: float = 10, seed: int = 1) -> Iterator[Happened]:
    """Send requests to 127.0.0.1:`port` with incomplete or invalid bodies, at Poisson times."""
    with _happens("upload", port, per_s, seed) as happened:
        yield happened


class Relay:
    """Proxy for a local service, with delays and outages."""

    def __init__(self, helper: subprocess.Popen[str], port: int) -> None:
        """Wrap a relay that listens on `port`."""
        self._helper = helper
        self.port = port

    @property
    def url(self) -> str:
        """URL of the relay."""
        return f"http://127.0.0.1:{self.port}"

    def delay(self, seconds: float) -> None:
        """Set the one-way delay of bytes, from now on."""
        self._command("delay", seconds)

    def outage(self, manner: str) -> None:
        """Begin an outage, until `restore`.

        Args:
            manner: ``refused`` (connections are reset, new ones refused), ``silent`` (no bytes pass) or
                ``unavailable`` (503 for each request).
        """
        if manner not in {"refused", "silent", "unavailable"}:
            raise ValueError(f"unknown outage {manner!r}; choose refused, silent or unavailable")
        self._command("outage", manner)

    def restore(self) -> None:
        """End an outage."""
        self._command("outage", None)

    def _command(self, *command: object) -> None:
        assert self._helper.stdin
        assert self._helper.stdout
        print(json.dumps(command), file=self._helper.stdin, flush=True)
        self._helper.stdout.readline()


@contextmanager
def relay(port: int) -> Iterator[Relay]:
    """Relay connections to the service on 127.0.0.1:`port`."""
    with _helper("relay", port) as helper:
        assert helper.stdout
        yield Relay(helper, json.loads(helper.stdout.readline()))


@contextmanager
def network(*, delay_ms: float = 0, jitter_ms: float = 0, loss: float = 0) -> Iterator[list[str]]:
    """Make a network namespace whose loopback delays each packet and loses the fraction `loss` of them (netem).

    Returns:
        Prefix of commands that run in the namespace; both service and client have to.

    Raises:
        UnavailableError: Without the permission to create one, without ``tc``, or without netem in the kernel.
    """
    jitter = f" {jitter_ms}ms" if jitter_ms else ""
    netem = f"netem delay {delay_ms}ms{jitter} loss {loss:%}"
    # `cat` holds the namespace until its standard input closes.
    script = f"ip link set lo up && tc qdisc add dev lo root {netem} && echo ready && exec cat"
    command = ["unshare", "--user", "--map-root-user", "--net", "sh", "-c", script]
    try:
        holder = _start(command, stderr=subprocess.PIPE)
    except OSError as error:
        raise UnavailableError(f"no network namespace: {error}") from None
    with _ended(holder):
        assert holder.stdout
        assert holder.stderr
        if holder.stdout.readline() != "ready\n":
            raise UnavailableError(f"no netem in a network namespace: {holder.stderr.read().strip()}")
        yield ["nsenter", "-t", str(holder.pid), "--user", "--net", "--preserve-credentials"]


# --- Processes of noises


def _start(command: list[str], stderr: int | None = None) -> subprocess.Popen[str]:
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, text=True)


@contextmanager
def _ended(process: subprocess.Popen[str]) -> Iterator[None]:
    try:
        yield
    finally:
        with suppress(OSError, ValueError):
            process.communicate(timeout=GRACE_S)  # closes its standard input
        process.kill()
        process.wait()


@contextmanager
def _helper(kind: str, *args: float) -> Iterator[subprocess.Popen[str]]:
    helper = _start([sys.executable, str(PROCESS), kind, *map(str, args)])
    with _ended(helper):
        yield helper


@contextmanager
def _happens(kind: str, *args: float) -> Iterator[Happened]:
    happened = Happened()
    helper = _start([sys.executable, str(PROCESS), kind, *map(str, args)])

    def read() -> None:
        assert helper.stdout
        for line in helper.stdout:
            begin, end = json.loads(line)
            happened.spans.append((begin, end))

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    try:
        yield happened
    finally:
        assert helper.stdin
        assert helper.stdout
        helper.stdin.close()
        reader.join(GRACE_S)
        helper.kill()
        helper.wait()
        reader.join()
        helper.stdout.close()
