"""The original client on asyncio: a worker per key, each of which waits for its answer before it goes on.

    python with_asyncio.py --limiter interval|ring|buffer|aiolimiter|pyrate [--dead-letters] [--at-once] --url ...

`--dead-letters`: what has expired or failed is queued again, at most 5 times, with a new second to live. `--at-once`: a
worker does not wait for its answer.
"""

from __future__ import annotations

import asyncio
import sys
from collections import deque
from typing import Protocol

import aiohttp
from jobs import READY, TIMEOUT_S, Book, Job, Nonces, arguments, named, now_ms
from limiters import DOCUMENTED, RATE, Ring


class Gate(Protocol):
    """Makes a worker wait until its key may send."""

    async def pass_in(self, ms: float) -> bool:
        """Whether it may within so long."""

    def answered(self, took_ms: float) -> None:
        """An answer is there."""


class Documented:
    """A limiter of the original."""

    def __init__(self, limiter: Ring) -> None:
        """Of one key."""
        self._limiter = limiter

    async def pass_in(self, ms: float) -> bool:
        """Whether it may within so long."""
        last = now_ms() + ms
        while (now := now_ms()) <= last:
            if not (wait := self._limiter.wait_ms(now)):
                self._limiter.sent(now)
                return True
            await asyncio.sleep(wait / 1000)
        return False

    def answered(self, took_ms: float) -> None:
        """An answer is there."""
        self._limiter.answered(took_ms)


class Leaky:
    """aiolimiter: a leaky bucket, 20 at once, and then one each 50 ms."""

    def __init__(self) -> None:
        """Of one key."""
        from aiolimiter import AsyncLimiter  # noqa: PLC0415 - each variant has its own packages

        self._limiter = AsyncLimiter(RATE, 1)

    async def pass_in(self, ms: float) -> bool:
        """Whether it may within so long."""
        try:
            await asyncio.wait_for(self._limiter.acquire(), ms / 1000)
        except asyncio.TimeoutError:
            return False
        return True

    def answered(self, took_ms: float) -> None:
        """It does not care."""


class Sliding:
    """pyrate-limiter: at most 20 within any second, by its own clock."""

    def __init__(self) -> None:
        """Of one key."""
        from pyrate_limiter import Duration, InMemoryBucket, Limiter, Rate  # noqa: PLC0415

        self._limiter = Limiter(InMemoryBucket([Rate(RATE, Duration.SECOND)]))

    async def pass_in(self, ms: float) -> bool:
        """Whether it may within so long."""
        return bool(await self._limiter.try_acquire_async("key", timeout=ms / 1000))

    def answered(self, took_ms: float) -> None:
        """It does not care."""


def gate(name: str) -> Gate:
    """A limiter for one key."""
    if name in DOCUMENTED:
        return Documented(DOCUMENTED[name]())
    return Leaky() if name == "aiolimiter" else Sliding()


class Client:
    """The queue, the dead letters, and the workers."""

    def __init__(self, url: str, book: Book, dead_letters: bool, at_once: bool) -> None:
        """Nothing is queued."""
        self._url, self._book = url, book
        self._dead: deque[Job] | None = deque() if dead_letters else None
        self._at_once = at_once
        self._queue: asyncio.Queue[Job] = asyncio.Queue()
        self._out: set[asyncio.Task[None]] = set()

    def put(self, job: Job) -> None:
        """One more."""
        self._queue.put_nowait(job)

    async def bring_back(self) -> None:
        """Puts dead letters into the queue again."""
        while self._dead is not None:
            while self._dead:
                self.put(self._dead.popleft())
            await asyncio.sleep(0.01)

    async def work(self, key: str, gate: Gate, session: aiohttp.ClientSession) -> None:
        """Sends with one key."""
        nonces = Nonces()
        while True:
            job = await self._queue.get()
            left = job.left_ms()
            if left <= 0 or not await gate.pass_in(left):
                self._lose(job, "expired")
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
            async with session.get(self._url, data=form) as answer:
                await answer.json()
        except (aiohttp.ClientError, asyncio.TimeoutError):
            self._lose(job, "graveyard")
            return
        gate.answered(now_ms() - began)
        if answer.status == 200:
            self._book.ended(job, "done", answer.status)
        else:
            self._lose(job, "graveyard", answer.status)

    def _lose(self, job: Job, state: str, status: int | None = None) -> None:
        if self._dead is None:
            self._book.ended(job, state, status)
        elif job.once_more():
            self._dead.append(job)
        else:
            self._book.ended(job, "graveyard", status)


async def main() -> None:
    """Deliver what comes, until nothing more does."""
    parser = arguments()
    parser.add_argument("--limiter", required=True, choices=[*DOCUMENTED, "aiolimiter", "pyrate"])
    parser.add_argument("--dead-letters", action="store_true")
    parser.add_argument("--at-once", action="store_true")
    args = parser.parse_args()
    client = Client(f"{args.url}/api/request", Book(args.out), args.dead_letters, args.at_once)
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
