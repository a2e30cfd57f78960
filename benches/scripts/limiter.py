"""Sends requests through a limiter of a library, as fast as it lets them, and prints counts as JSON.

    python limiter.py LIMITER --url URL [--limit 20 --per 1] [--seconds S] [--at-once 40] [--bound 0.05]

Tasks take turns; each waits for the limiter, sends one request with aiohttp and begins anew. A rejected request is lost.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from importlib import metadata
from typing import Any

import aiohttp

Block = Callable[[], AbstractAsyncContextManager[Any]]

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
        import weir

        bound = {"weir, learns": "learn", "weir": f"{args.bound}s"}[name]
        limiter = weir.Limiter(f"{args.limit}/{args.per}s", delay_bound=bound)
        return lambda: limiter("key")
    if name == "aiolimiter":
        from aiolimiter import AsyncLimiter

        aio = AsyncLimiter(args.limit, args.per)
        return lambda: aio
    if name == "pyrate-limiter":
        from pyrate_limiter import Duration, Limiter, Rate

        pyrate = Limiter(Rate(args.limit, args.per * Duration.SECOND))
        return lambda: Before(lambda: pyrate.try_acquire_async("key"))
    from limits import parse
    from limits.aio.storage import MemoryStorage
    from limits.aio.strategies import MovingWindowRateLimiter

    strategy, item = MovingWindowRateLimiter(MemoryStorage()), parse(f"{args.limit}/{args.per} second")

    async def hit() -> None:
        # The library has no wait: this is its documented way to know how long.
        while not await strategy.hit(item, "key"):
            stats = await strategy.get_window_stats(item, "key")
            await asyncio.sleep(max(stats.reset_time - time.time(), 0.001))

    return lambda: Before(hit)


async def send(args: argparse.Namespace) -> dict[str, Any]:
    """Send until the time is over."""
    limiter, numbers, statuses = block(args.limiter, args), itertools.count(1), dict[int, int]()
    end = time.monotonic() + args.seconds
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def work() -> None:
            while time.monotonic() < end:
                async with limiter():
                    if time.monotonic() >= end:
                        return
                    number = next(numbers)
                    async with session.get(f"{args.url}&nonce={number}&req_id={number}") as response:
                        await response.read()
                        statuses[response.status] = statuses.get(response.status, 0) + 1

        async with asyncio.timeout(args.seconds + 5):
            await asyncio.gather(*(work() for _ in range(args.at_once)), return_exceptions=True)
    return {"statuses": statuses, "version": metadata.version(PACKAGES[args.limiter.partition(",")[0]])}


def main() -> None:
    """Send, and print."""
    parser = argparse.ArgumentParser(description="Send requests through a limiter.")
    parser.add_argument("limiter")
    parser.add_argument("--url", required=True)
    parser.add_argument("--limit", type=int, default=20)
    parser.add_argument("--per", type=int, default=1, help="in seconds")
    parser.add_argument("--bound", type=float, default=0.05, help="delay bound for weir, in seconds")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--at-once", type=int, default=40)
    print(json.dumps(asyncio.run(send(parser.parse_args()))))


if __name__ == "__main__":
    main()
