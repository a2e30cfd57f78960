"""Jobs that do nothing, with taskiq on a list of Redis's."""

import asyncio

from marks import URL, mark
from taskiq_redis import ListQueueBroker

broker = ListQueueBroker(URL)


@broker.task
async def nothing() -> None:
    """What a job does."""
    mark()


def enqueue(count: int) -> None:
    """Puts so many jobs into the queue."""

    async def all_of_them() -> None:
        await broker.startup()
        for _ in range(count):
            await nothing.kiq()
        await broker.shutdown()

    asyncio.run(all_of_them())
