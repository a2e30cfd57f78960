"""Processes of noises, started by ``noise.py``: ``python noise_process.py KIND ...``; each ends with its input."""

from __future__ import annotations

import asyncio
import json
import os
import random
import select
import signal
import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress

#: Timeout of connecting.
CONNECT_S = 5


def _ends_within(seconds: float) -> bool:
    """Wait, and return whether standard input was closed."""
    return bool(select.select([sys.stdin], [], [], seconds)[0])


def _happened(begin: float, end: float) -> None:
    print(json.dumps([begin, end]), flush=True)


def _stall(pid: int, per_s: float, shortest_s: float, longest_s: float, seed: int) -> None:
    rng = random.Random(seed)
    process = os.pidfd_open(pid)
    ends = False
    while not ends and not _ends_within(rng.expovariate(per_s)):
        length = rng.uniform(shortest_s, longest_s)
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


#: Head and beginning of a body: larger than the buffer of a gateway, and with an invalid chunk size.
BROKEN = (
    b"POST /echo HTTP/1.1\r\nhost: upload\r\ncontent-length: 1000000\r\n\r\n" + bytes(100_000),
    b"POST /echo HTTP/1.1\r\nhost: upload\r\ntransfer-encoding: chunked\r\n\r\n4\r\nbody\r\nnumber\r\n",
)
#: Duration of an upload before the connection closes.
UPLOAD_S = 0.01


def _upload(port: int, per_s: float, seed: int) -> None:
    rng = random.Random(seed)
    ends, number = False, 0
    while not ends and not _ends_within(rng.expovariate(per_s)):
        begin = time.monotonic()
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=CONNECT_S) as connection:
            connection.sendall(BROKEN[number % len(BROKEN)])
            ends = _ends_within(UPLOAD_S)
        number += 1
        _happened(begin, time.monotonic())


class _Relay:
    """Server of a relay, on one event loop."""

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
        commands = asyncio.StreamReader()
        loop = asyncio.get_running_loop()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(commands), sys.stdin)
        while line := await commands.readline():
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
            broken = list(self._open)
            for writer in broken:
                writer.transport.abort()
            # Sockets close in the next turn of the event loop; before that, a client could still send on one.
            await asyncio.gather(*(writer.wait_closed() for writer in broken), return_exceptions=True)

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
            pass  # one side has disconnected
        finally:
            self._open.discard(writer)
            writer.close()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Copy bytes until their end; delays of pieces overlap."""
        loop = asyncio.get_running_loop()
        pieces: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()

        async def read() -> None:
            try:
                while piece := await reader.read(1 << 16):
                    pieces.put_nowait((loop.time() + self._delay_s, piece))
            finally:
                pieces.put_nowait((loop.time() + self._delay_s, b""))

        reading = asyncio.ensure_future(read())
        self._tasks.add(reading)
        try:
            while True:
                due, piece = await pieces.get()
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
    """Run a noise until standard input closes."""
    # Ctrl-C is handled by the measurement, which then closes standard input.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    run, types = KINDS[sys.argv[1]]
    run(*(kind(arg) for kind, arg in zip(types, sys.argv[2:], strict=True)))


if __name__ == "__main__":
    main()
