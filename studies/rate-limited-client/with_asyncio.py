"""The original client on asyncio: a worker per key, each of which waits for a response before its next request.

    python with_asyncio.py --limiter interval|ring|buffer|aiolimiter|pyrate [--retry] [--at-once] --url ...

`--retry`: expired and failed requests are queued again, at most 5 times, with a new second to live. `--at-once`:
a worker does not wait for responses.
"""

from __future__ import annotations

import asyncio
import sys
from collections import deque
from typing import Protocol

import aiohttp
from jobs import READY, TIMEOUT_S, Job, Nonces, Results, arguments, named, now_ms
from limiters import DOCUMENTED, RATE, Ring


class Gate(Protocol):
    """Limiter that a worker awaits before it sends."""

    async def pass_in(self, ms: float) -> bool:
        """Wait until the key may send; return whether it may within this time."""

    def responded(self, duration_ms: float) -> None:
        """Take the duration of a request with a response."""


class Documented:
    """Limiter of the original."""

    def __init__(self, limiter: Ring) -> None:
        """Limit one key."""
        self._limiter = limiter

    async def pass_in(self, ms: float) -> bool:
        """Wait until the key may send; return whether it may within this time."""
        last = now_ms() + ms
        while (now := now_ms()) <= last:
            if not (wait := self._limiter.wait_ms(now)):
                self._limiter.sent(now)
                return True
            await asyncio.sleep(wait / 1000)
        return False

    def responded(self, duration_ms: float) -> None:
        """Take the duration of a request with a response."""
        self._limiter.responded(duration_ms)


class Leaky:
    """aiolimiter: a leaky bucket, 20 at once, and then one each 50 ms."""

    def __init__(self) -> None:
        """Limit one key."""
        from aiolimiter import AsyncLimiter  # noqa: PLC0415 - each variant has its own packages

        self._limiter = AsyncLimiter(RATE, 1)

    async def pass_in(self, ms: float) -> bool:
        """Wait until the key may send; return whether it may within this time."""
        try:
            await asyncio.wait_for(self._limiter.acquire(), ms / 1000)
        except asyncio.TimeoutError:
            return False
        return True

    def responded(self, duration_ms: float) -> None:
        """Ignore it."""


class Sliding:
    """pyrate-limiter: at most 20 within any second, by its own clock."""

    def __init__(self) -> None:
        """Limit one key."""
        from pyrate_limiter import Duration, InMemoryBucket, Limiter, Rate  # noqa: PLC0415

        self._limiter = Limiter(InMemoryBucket([Rate(RATE, Duration.SECOND)]))

    async def pass_in(self, ms: float) -> bool:
        """Wait until the key may send; return whether it may within this time."""
        return bool(await self._limiter.try_acquire_async("key", timeout=ms / 1000))

    def responded(self, duration_ms: float) -> None:
        """Ignore it."""


def gate(name: str) -> Gate:
    """Return a limiter for one key."""
    if name in DOCUMENTED:
        return Documented(DOCUMENTED[name]())
    return Leaky() if name == "aiolimiter" else Sliding()


class Client:
    """The queue, the requests to retry, and the workers."""

    def __init__(self, url: str, results: Results, retry: bool, at_once: bool) -> None:
        """Start with an empty queue."""
        self._url, self._results = url, results
        self._retrying: deque[Job] | None = deque() if retry else None
        self._at_once = at_once
        self._queue: asyncio.Queue[Job] = asyncio.Queue()
        self._out: set[asyncio.Task[None]] = set()

    def put(self, job: Job) -> None:
        """Queue a job."""
        self._queue.put_nowait(job)

    async def bring_back(self) -> None:
        """Queue expired and failed requests again."""
        while self._retrying is not None:
            while self._retrying:
                self.put(self._retrying.popleft())
            await asyncio.sleep(0.01)

    async def work(self, key: str, gate: Gate, session: aiohttp.ClientSession) -> None:
        """Send with one key."""
        nonces = Nonces()
        while True:
            job = await self._queue.get()
            left = job.left_ms()
            if left <= 0 or not await gate.pass_in(left):
                self._fail(job, "expired")
                continue
            sending = self._send(job, key, nonces.next(), gate, session)
            if self._at_once:
                task = asyncio.create_task(sending)
                self._out.add(task)
                task.add_done_callback(self._out.discard)
            else:
                await sending

    async def _send(self, job: Job, key: str, nonce: int, gate: Gate, session: aiohttp.ClientSession) -> None:
        job.sent_ms = began = now_ms()
        form = {"api_key": key, "nonce": nonce, "req_id": job.name}
        try:
            async with session.get(self._url, data=form) as response:
                await response.json()
        except (aiohttp.ClientError, asyncio.TimeoutError):
            self._fail(job, "dead_lettered")
            return
        gate.responded(now_ms() - began)
        if response.status == 200:
            self._results.ended(job, "done", response.status)
        else:
            self._fail(job, "dead_lettered", response.status)

    def _fail(self, job: Job, state: str, status: int | None = None) -> None:
        if self._retrying is None:
            self._results.ended(job, state, status)
        elif job.once_more():
            self._retrying.append(job)
        else:
            self._results.ended(job, "dead_lettered", status)


async def main() -> None:
    """Deliver the requests on stdin, until it ends."""
    parser = arguments()
    parser.add_argument("--limiter", required=True, choices=[*DOCUMENTED, "aiolimiter", "pyrate"])
    parser.add_argument("--retry", action="store_true")
    parser.add_argument("--at-once", action="store_true")
    args = parser.parse_args()
    client = Client(f"{args.url}/api/request", Results(args.out), args.retry, args.at_once)
    lines = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    timeout = aiohttp.ClientTimeout(total=TIMEOUT_S)
    async with aiohttp.ClientSession(timeout=timeout) as session:
        tasks = [asyncio.create_task(client.work(key, gate(args.limiter), session)) for key in args.keys.split(",")]
        tasks.append(asyncio.create_task(client.bring_back()))
        print(READY, flush=True)
        async for line in lines:
            client.put(named(line))
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


if __name__ == "__main__":
    asyncio.run(main())
