"""Service with a rate limit for one key, which counts accepted and rejected requests by its own clock.

``python limited.py JSON`` serves a `Limited` on a free port, and prints the address as its first line. Responses may
have headers with the service's count; ``GET /log`` returns all events. One-way delays and work take time, and an outage
begins some time after the first request. Another client of the same key may use a part of the limit.
"""

from __future__ import annotations

import asyncio
import json
import math
import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from harness import limits
from harness.servers import Server, service

#: Kinds of outages: 503s as from a proxy in front of the service, refused connections, or silence.
MANNERS = ("503", "refused", "silent")
#: Lateness of the service's own timer, for 1% of the time, above which it had too little of its core.
LATE_MS = 20.0
TICK_S = 0.01


@dataclass(frozen=True)
class Limited:
    """Configuration of a service; times in seconds."""

    limit: str = ""  # empty: none
    weight: int = 1  # count of each request, unknown to its sender
    used: int = 0  # part of the limit that is used when the first request arrives
    headers: bool = False  # headers of OpenAI: limit, remaining and reset of requests
    retry_after: bool = False  # whole seconds, rounded up
    way: tuple[float, float] = (0.002, 0.02)  # one-way delay, uniform
    work: tuple[float, float] = (0.01, 0.05)
    neighbour_per_s: float = 0.0  # requests of another client
    outage: str = ""  # one of MANNERS
    outage_after_s: float = 0.0  # from the first request
    outage_s: float = 0.0
    hangs: bool = False  # accepts every request and never responds
    seed: int = 1

    def work_times(self) -> Iterator[float]:
        """Yield the duration of work on each accepted request, in order."""
        rng = random.Random(self.seed)
        while True:
            yield rng.uniform(*self.work)


@dataclass
class Log:
    """Events, in seconds of the service's clock."""

    began: float | None = None
    """Time of the first request."""
    ended: float = 0.0
    """Time of reading the log."""
    accepted: list[float] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    """Job of each accepted request."""
    rejected: list[float] = field(default_factory=list)
    in_outage: list[float] = field(default_factory=list)
    """Requests that arrived during the outage; empty if the service does not listen then."""
    neighbour: list[float] = field(default_factory=list)
    """Accepted requests of the other client."""
    late_ms: float = 0.0
    """Lateness of the service's own timer: this, or more, for 1% of the time."""

    def delivered(self) -> int:
        """Count the jobs that were accepted at least once."""
        return len(set(self.ids))


@contextmanager
def limited(what: Limited, core: int) -> Iterator[Server]:
    """Start the service in its own process, until the context is left."""
    command = [sys.executable, __file__, json.dumps(asdict(what))]
    with service("limited", command, core) as server:
        yield server


def log(server: Server) -> Log:
    """Return the events so far."""
    return Log(**json.loads(server.get("/log")))


class _Service:
    """State shared by all connections."""

    def __init__(self, what: Limited) -> None:
        self.what = what
        self.loop = asyncio.get_running_loop()
        self.connections: set[_Connection] = set()
        self._limit = limits.read(what.limit)
        self._log = Log()
        self._late_ms: list[float] = []
        self._work, self._ways = what.work_times(), random.Random(what.seed + 1)
        self._out = False
        self._server: asyncio.Server | None = None
        self._port = 0

    async def listen(self) -> int:
        self._server = await self.loop.create_server(
            lambda: _Connection(self), "127.0.0.1", self._port, backlog=4096, reuse_address=True
        )
        self._port = self._server.sockets[0].getsockname()[1]
        return self._port

    def request(self, connection: _Connection, target: str) -> None:
        if target == "/log":
            self._log.ended, self._log.late_ms = self.loop.time(), self._lateness_ms()
            connection.respond(200, body=json.dumps(asdict(self._log)))
            return
        now = self.loop.time()
        if self._log.began is None:
            self._begin(now)
        if self._out:
            self._log.in_outage.append(now)
            if self.what.outage == "503":
                connection.respond(503)
        elif not self.what.hangs:
            due = now + self._way_s()
            self.loop.call_at(due, self._judge, connection, target.rpartition("=")[2])

    def _begin(self, now: float) -> None:
        self._log.began = now
        self._tick(now)
        what = self.what
        if self._limit and what.used:
            self._limit.take(now, what.used)
        if what.neighbour_per_s:
            self.loop.call_later(1 / what.neighbour_per_s, self._neighbour, now + 1 / what.neighbour_per_s)
        if what.outage:
            self.loop.call_at(now + what.outage_after_s, self._go_out)

    def _neighbour(self, due: float) -> None:
        now = self.loop.time()
        if self._limit and self._limit.take(now) == 0:
            self._log.neighbour.append(now)
            self._limit.finish()
        due += 1 / self.what.neighbour_per_s
        self.loop.call_at(due, self._neighbour, due)

    def _tick(self, due: float) -> None:
        now = self.loop.time()
        self._late_ms.append(1000 * (now - due))
        self.loop.call_at(now + TICK_S, self._tick, now + TICK_S)

    def _lateness_ms(self) -> float:
        """Compute the lateness of the latest 1% of the time; ticks count by their length, since late ones are fewer."""
        left_ms = 0.01 * sum(late + 1000 * TICK_S for late in self._late_ms)
        for late in sorted(self._late_ms, reverse=True):
            left_ms -= late + 1000 * TICK_S
            if left_ms <= 0:
                return late
        return 0.0

    def _judge(self, connection: _Connection, name: str) -> None:
        now = self.loop.time()
        wait_s = self._limit.take(now, self.what.weight) if self._limit else 0.0
        headers = self._headers(now, wait_s)
        if wait_s:
            self._log.rejected.append(now)
            self.loop.call_later(self._way_s(), connection.respond, 429, headers)
        else:
            self._log.accepted.append(now)
            self._log.ids.append(name)
            self.loop.call_later(next(self._work), self._finish, connection, headers)

    def _finish(self, connection: _Connection, headers: str) -> None:
        if self._limit:
            self._limit.finish(self.what.weight)
        self.loop.call_later(self._way_s(), connection.respond, 200, headers, "{}")

    def _headers(self, now: float, wait_s: float) -> str:
        """Make the headers with the count at the time of the decision."""
        found = ""
        if self._limit and self.what.headers:
            weight = self.what.weight
            found += f"x-ratelimit-limit-requests: {self._limit.count // weight}\r\n"
            found += f"x-ratelimit-remaining-requests: {self._limit.remaining(now) // weight}\r\n"
            found += f"x-ratelimit-reset-requests: {self._limit.reset_s(now):.3f}s\r\n"
        if wait_s and self.what.retry_after and math.isfinite(wait_s):
            found += f"retry-after: {math.ceil(wait_s)}\r\n"
        return found

    def _way_s(self) -> float:
        return self._ways.uniform(*self.what.way)

    def _go_out(self) -> None:
        self._out = True
        self.loop.call_later(self.what.outage_s, self._come_back)
        if self.what.outage == "refused":
            assert self._server
            self._server.close()
        if self.what.outage != "silent":
            for connection in list(self.connections):
                connection.abort()

    def _come_back(self) -> None:
        self._out = False
        if self.what.outage == "refused":
            self._back = self.loop.create_task(self.listen())

    @property
    def silent(self) -> bool:
        """Whether responses are withheld."""
        return self._out and self.what.outage == "silent"


class _Connection(asyncio.Protocol):
    """Connection with requests in sequence, without bodies."""

    def __init__(self, served: _Service) -> None:
        self._service = served
        self._read = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._service.connections.add(self)

    def connection_lost(self, error: Exception | None) -> None:
        self._service.connections.discard(self)

    def data_received(self, piece: bytes) -> None:
        self._read += piece
        head, end, rest = self._read.partition(b"\r\n\r\n")
        if end:
            self._read = rest
            self._service.request(self, head.split(b" ", 2)[1].decode())

    def respond(self, status: int, headers: str = "", body: str = "") -> None:
        if not self._service.silent:
            head = f"HTTP/1.1 {status} -\r\ncontent-length: {len(body)}\r\n{headers}\r\n"
            self._transport.write((head + body).encode())

    def abort(self) -> None:
        self._transport.abort()


async def _serve(what: Limited) -> None:
    port = await _Service(what).listen()
    print(json.dumps({"listening": f"http://127.0.0.1:{port}"}), flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    told: dict[str, Any] = json.loads(sys.argv[1])
    asyncio.run(_serve(Limited(**{**told, "way": tuple(told["way"]), "work": tuple(told["work"])})))
