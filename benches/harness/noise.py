"""Noise: what shared machines and networks do to a process, done to it on purpose.

Each kind is a context manager, and gone when it is left:

- ``stalls(pid)``: a process stands still for 5 to 50 ms, five times a second;
- ``burner(core)``: a neighbour takes a core for 20 of every 200 ms, or all of the time;
- ``neighbour(weir, url, rate_per_s=...)``: another client uses the same key or upstream;
- ``broken_uploads(port)``: requests whose bodies break off or are framed wrong, ten a second;
- ``relay(port)``: a way to a local service that delays bytes and has outages of three manners;
- ``network(delay_ms=..., loss=...)``: a network namespace whose loopback delays and loses packets.

The work is done by processes of their own (``python noise.py KIND ...``), so that it does not wait for the
interpreter of the measurement. Each ends when its standard input closes, and puts right what it did: nothing stays
stopped, taken or open when the measurement fails or is killed. Lengths and gaps are drawn from a seed; when they begin
is up to the machine, so each noise returns what it did.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

#: A noise that does not end this long after it was asked to is killed.
GRACE_S = 5


class UnavailableError(Exception):
    """A noise that this machine does not allow, and why."""


@dataclass
class Happened:
    """What a noise did so far; all of it once its context is left."""

    spans: list[tuple[float, float]] = field(default_factory=list)
    """From when to when at least, in seconds of ``time.monotonic()``; one is added when it has ended."""

    @property
    def seconds(self) -> float:
        """How long in all."""
        return sum(end - begin for begin, end in self.spans)


@contextmanager
def stalls(
    pid: int, *, per_s: float = 5, shortest_s: float = 0.005, longest_s: float = 0.05, seed: int = 1
) -> Iterator[Happened]:
    """Stall the process `pid`: SIGSTOP, and SIGCONT after a time that is uniform between the two lengths.

    Args:
        pid: A process of ours; when it ends, so do the stalls.
        per_s: Mean number of stalls in a second of running; the gaps are exponential.
        shortest_s: Least length.
        longest_s: Greatest length.
        seed: Of lengths and gaps.
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
    """What a neighbour did; complete once its context is left."""

    run: dict[str, Any] = field(default_factory=dict)
    """Its run, as ``weir load --format json`` prints it."""


@contextmanager
def neighbour(weir: Path, url: str, *, rate_per_s: float, headers: Sequence[str] = ()) -> Iterator[Use]:
    """Send `rate_per_s` requests to `url` beside what is measured: another user of the key, or of the upstream."""
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
    """Send requests to 127.0.0.1:`port` whose bodies break off or are framed wrong, at Poisson times."""
    with _happens("upload", port, per_s, seed) as happened:
        yield happened


class Relay:
    """A way to a local service that can be made worse while it is used."""

    def __init__(self, helper: subprocess.Popen[str], port: int) -> None:
        """A relay that listens on `port`."""
        self._helper = helper
        self.port = port

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}"

    def delay(self, seconds: float) -> None:
        """From now on, bytes take so long each way."""
        self._order("delay", seconds)

    def outage(self, manner: str) -> None:
        """The service is out until `restore`.

        Args:
            manner: ``refused`` (connections are reset and new ones are not accepted), ``silent`` (nothing passes) or
                ``unavailable`` (each request is answered with 503).
        """
        if manner not in {"refused", "silent", "unavailable"}:
            raise ValueError(f"unknown manner {manner!r}; choose refused, silent or unavailable")
        self._order("outage", manner)

    def restore(self) -> None:
        """The end of an outage."""
        self._order("outage", None)

    def _order(self, *order: object) -> None:
        assert self._helper.stdin
        assert self._helper.stdout
        print(json.dumps(order), file=self._helper.stdin, flush=True)
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
        The beginning of a command that is to run in it; the service and its client have to be there both.

    Raises:
        UnavailableError: Without the right to make one, without ``tc``, or without netem in the kernel.
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


# --- Processes that make the noise


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
    helper = _start([sys.executable, __file__, kind, *map(str, args)])
    with _ended(helper):
        yield helper


@contextmanager
def _happens(kind: str, *args: float) -> Iterator[Happened]:
    happened = Happened()
    helper = _start([sys.executable, __file__, kind, *map(str, args)])

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


def _ends_within(seconds: float) -> bool:
    """Waits for that time; whether standard input was closed meanwhile."""
    return bool(select.select([sys.stdin], [], [], seconds)[0])


def _happened(begin: float, end: float) -> None:
    print(json.dumps([begin, end]), flush=True)


def _stall(pid: int, per_s: float, shortest_s: float, longest_s: float, seed: int) -> None:
    dice = random.Random(seed)
    process = os.pidfd_open(pid)
    ends = False
    while not ends and not _ends_within(dice.expovariate(per_s)):
        length = dice.uniform(shortest_s, longest_s)
        try:
            signal.pidfd_send_signal(process, signal.SIGSTOP)
        except ProcessLookupError:
            return
        begin = time.monotonic()
        try:
            ends = _ends_within(length)
        finally:
            end = time.monotonic()
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(process, signal.SIGCONT)
        _happened(begin, end)


def _burn(core: int, busy_s: float, period_s: float) -> None:
    os.sched_setaffinity(0, {core})
    while True:
        begin = time.monotonic()
        while time.monotonic() < begin + busy_s:
            pass
        _happened(begin, time.monotonic())
        if _ends_within(max(0.0, period_s - busy_s)):
            return


#: Head and beginning of a body: longer than a gateway keeps, and with an invalid length.
BROKEN = (
    b"POST /echo HTTP/1.1\r\nhost: upload\r\ncontent-length: 1000000\r\n\r\n" + bytes(100_000),
    b"POST /echo HTTP/1.1\r\nhost: upload\r\ntransfer-encoding: chunked\r\n\r\n4\r\nbody\r\nnumber\r\n",
)
#: What an upload takes until it breaks off: its beginning has arrived by then.
UPLOAD_S = 0.01


def _upload(port: int, per_s: float, seed: int) -> None:
    dice = random.Random(seed)
    ends, number = False, 0
    while not ends and not _ends_within(dice.expovariate(per_s)):
        begin = time.monotonic()
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=GRACE_S) as connection:
            connection.sendall(BROKEN[number % len(BROKEN)])
            ends = _ends_within(UPLOAD_S)
        number += 1
        _happened(begin, time.monotonic())


class _Relay:
    """The relay's own side, on one event loop."""

    def __init__(self, port: int) -> None:
        self._upstream = port
        self._delay_s = 0.0
        self._outage: str | None = None
        self._passes = asyncio.Event()
        self._passes.set()
        self._open: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self._port = 0

    async def run(self) -> None:
        await self._listen()
        print(json.dumps(self._port), flush=True)
        orders = asyncio.StreamReader()
        loop = asyncio.get_running_loop()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(orders), sys.stdin)
        while line := await orders.readline():
            kind, value = json.loads(line)
            if kind == "delay":
                self._delay_s = value
            else:
                await self._change(value)
            print("done", flush=True)

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self._port, backlog=1024)
        self._port = self._server.sockets[0].getsockname()[1]

    async def _change(self, outage: str | None) -> None:
        self._outage = outage
        if outage == "silent":
            self._passes.clear()
        else:
            self._passes.set()
        if outage == "refused" and self._server:
            self._server.close()
            self._server = None
        elif outage != "refused" and not self._server:
            await self._listen()
        if outage in {"refused", "unavailable"}:
            for writer in self._open:
                writer.transport.abort()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        try:
            if self._outage == "unavailable":
                await reader.readuntil(b"\r\n\r\n")
                writer.write(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                await writer.drain()
                return
            await self._passes.wait()
            back, forth = await asyncio.open_connection("127.0.0.1", self._upstream)
            self._open.add(forth)
            try:
                await asyncio.gather(self._carry(reader, forth), self._carry(back, writer))
            finally:
                self._open.discard(forth)
                forth.close()
        except (OSError, asyncio.IncompleteReadError):
            pass  # one of the ends is gone
        finally:
            self._open.discard(writer)
            writer.close()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carries bytes until the end of them; those that are delayed do not wait for one another."""
        loop = asyncio.get_running_loop()
        way: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()

        async def read() -> None:
            try:
                while piece := await reader.read(1 << 16):
                    way.put_nowait((loop.time() + self._delay_s, piece))
            finally:
                way.put_nowait((loop.time() + self._delay_s, b""))

        reading = asyncio.ensure_future(read())
        self._tasks.add(reading)
        try:
            while True:
                due, piece = await way.get()
                await asyncio.sleep(max(0.0, due - loop.time()))
                await self._passes.wait()
                if not piece:
                    break
                writer.write(piece)
                await writer.drain()
            await reading
            if writer.can_write_eof():
                writer.write_eof()
        finally:
            reading.cancel()
            self._tasks.discard(reading)


def _relay(port: int) -> None:
    asyncio.run(_Relay(port).run())


KINDS: dict[str, tuple[Callable[..., None], tuple[type, ...]]] = {
    "stall": (_stall, (int, float, float, float, int)),
    "burn": (_burn, (int, float, float)),
    "upload": (_upload, (int, float, int)),
    "relay": (_relay, (int,)),
}


def main() -> None:
    """One noise, until standard input closes."""
    # Ctrl-C is for the measurement, which then closes our input.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    run, types = KINDS[sys.argv[1]]
    run(*(kind(arg) for kind, arg in zip(types, sys.argv[2:], strict=True)))


if __name__ == "__main__":
    main()
