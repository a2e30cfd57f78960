"""A million calls through a transport, many of which are cancelled: nothing is left of them."""

import asyncio
import gc
import os
import random
import resource
import threading

import httpx2
import pytest

import weir
import weir.httpx2

pytestmark = pytest.mark.soak

CALLS = int(os.environ.get("WEIR_SOAK_CALLS", "1000000"))
AT_ONCE = 50


def files() -> int:
    """Open files of this process."""
    return len(os.listdir("/proc/self/fd"))


def memory_kb() -> int:
    """Memory of this process now, in KiB."""
    with open("/proc/self/statm", encoding="ascii") as statm:
        return int(statm.read().split()[1]) * resource.getpagesize() // 1024


async def one(client: httpx2.AsyncClient, url: str, draw: random.Random) -> None:
    """Make one call, which may be cancelled at any point of it: before, while it waits, within its body."""
    path = draw.choice(("/status/200", "/status/503", "/delay/1", "/static?bytes=200000"))

    async def call() -> None:
        async with client.stream("GET", url + path) as response:
            async for _ in response.aiter_raw():
                if draw.random() < 0.1:
                    return

    task = asyncio.create_task(call())
    if draw.random() < 0.3:
        for _ in range(draw.randrange(8)):
            await asyncio.sleep(0)
        task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def some(client: httpx2.AsyncClient, url: str, number: int, draw: random.Random) -> None:
    """Make calls in sequence."""
    for _ in range(number):
        await one(client, url, draw)


def test_a_million_calls_leave_nothing() -> None:
    async def main(url: str) -> None:
        transport = weir.httpx2.AsyncTransport(
            deadline=10, retries=1, hedge=weir.Hedge(after=0.001), budget=weir.Budget(fraction=0.3, min_per_s=0)
        )
        async with httpx2.AsyncClient(transport=transport) as client:
            draw = random.Random(1)

            async def round_of(number: int) -> tuple[int, int, int, int]:
                await asyncio.gather(*(some(client, url, number // AT_ONCE, draw) for _ in range(AT_ONCE)))
                gc.collect()
                return files(), memory_kb(), len(asyncio.all_tasks()), threading.active_count()

            await round_of(CALLS // 10)
            before = await round_of(CALLS // 10)
            after = await round_of(CALLS * 8 // 10)
        print(f"files, KiB, tasks, threads: {before} after a fifth, {after} at the end")
        assert after[0] <= before[0] + AT_ONCE
        assert after[1] <= before[1] * 1.1 + 5_000
        assert (after[2], after[3]) == (before[2], before[3])

    with weir.serve("httpbin") as service:
        asyncio.run(main(service.url))
