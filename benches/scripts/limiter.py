"""Sends requests through a limiter of a library, as fast as it lets them, until enough are not rejected.

    python limiter.py LIMITER --url URL [--limit 20 --per 1] [--requests N] [--seconds S] [--at-once 40] [--bound 0.05]

Tasks take turns; each waits for the limiter, sends one request with aiohttp and begins anew. The output is a line of
JSON: responses by status, and the seconds from the first request to the last one that was not rejected.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import json
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from importlib import metadata
from typing import Any

import aiohttp
from aiolimiter import AsyncLimiter
from limits import parse
from limits.aio.storage import MemoryStorage
from limits.aio.strategies import MovingWindowRateLimiter
from pyrate_limiter import Duration, Limiter, Rate

import weir

Block = Callable[[], AbstractAsyncContextManager[Any]]

REJECTED = 429
#: Rejections in a row after which the key is blocked for good.
BLOCKED = 100
PACKAGES = {"weir": "weir-http", "pyrate-limiter": "pyrate-limiter", "aiolimiter": "aiolimiter", "limits": "limits"}


class Before:
    """Block whose begin waits."""

    def __init__(self, wait: Callable[[], Awaitable[Any]]) -> None:
        """Make a block that awaits `wait()` first."""
        self._wait = wait

    async def __aenter__(self) -> None:
        """Wait."""
        await self._wait()

    async def __aexit__(self, *error: object) -> None:
        """Leave."""


def block(name: str, args: argparse.Namespace) -> Block:
    """Return the limiter of a library, with its defaults."""
    if name.startswith("weir"):
        bound = {"weir, learns": "learn", "weir": f"{args.bound}s"}[name]
        limiter = weir.Limiter(f"{args.limit}/{args.per}s", delay_bound=bound)
        return lambda: limiter("key")
    if name == "aiolimiter":
        aio = AsyncLimiter(args.limit, args.per)
        return lambda: aio
    if name == "pyrate-limiter":
        pyrate = Limiter(Rate(args.limit, args.per * Duration.SECOND))
        return lambda: Before(lambda: pyrate.try_acquire_async("key"))
    strategy, item = MovingWindowRateLimiter(MemoryStorage()), parse(f"{args.limit}/{args.per} second")

    async def hit() -> None:
        # The library has no wait: this is its documented way to know how long.
        while not await strategy.hit(item, "key"):
            stats = await strategy.get_window_stats(item, "key")
            await asyncio.sleep(max(stats.reset_time - time.time(), 0.001))

    return lambda: Before(hit)


async def send(args: argparse.Namespace) -> dict[str, Any]:
    """Send until enough requests are through, or the time is over."""
    limiter, numbers, statuses = block(args.limiter, args), itertools.count(1), dict[int, int]()
    begins: list[float] = []
    in_row, done = [0], asyncio.Event()

    async def work(session: aiohttp.ClientSession) -> None:
        while not done.is_set():
            async with limiter():
                begin, number = time.monotonic(), next(numbers)
                async with session.get(f"{args.url}&nonce={number}&req_id={number}") as response:
                    await response.read()
                statuses[response.status] = statuses.get(response.status, 0) + 1
                if response.status == REJECTED:
                    in_row[0] += 1
                else:
                    begins.append(begin)
                    in_row[0] = 0
                if len(begins) >= args.requests or in_row[0] >= BLOCKED:
                    done.set()

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        tasks = [asyncio.create_task(work(session)) for _ in range(args.at_once)]
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(done.wait(), args.seconds)
        for task in tasks:
            task.cancel()
        for outcome in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(outcome, Exception):
                raise outcome
    through = sorted(begins)[: args.requests]
    took_s = through[-1] - through[0] if through else 0.0
    version = metadata.version(PACKAGES[args.limiter.partition(",")[0]])
    return {"statuses": statuses, "through": len(through), "took_s": took_s, "version": version}


def main() -> None:
    """Send, and print."""
    parser = argparse.ArgumentParser(description="Send requests through a limiter.")
    parser.add_argument("limiter")
    parser.add_argument("--url", required=True)
    parser.add_argument("--limit", type=int, default=20)
    parser.add_argument("--per", type=int, default=1, help="in seconds")
    parser.add_argument("--bound", type=float, default=0.05, help="delay bound for weir, in seconds")
    parser.add_argument("--requests", type=int, default=200, help="that are not rejected")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--at-once", type=int, default=40)
    print(json.dumps(asyncio.run(send(parser.parse_args()))))


if __name__ == "__main__":
    main()
