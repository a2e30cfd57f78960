"""Jobs that do nothing, with arq: results are not kept."""

import asyncio
from typing import Any

from arq import create_pool
from arq.connections import RedisSettings
from marks import PORT, mark

SETTINGS = RedisSettings(port=int(PORT))


async def nothing(_: dict[str, Any]) -> None:
    """What a job does."""
    mark()


class Worker:
    """How it works."""

    functions = (nothing,)
    redis_settings = SETTINGS
    keep_result = 0


def enqueue(count: int) -> None:
    """Puts so many jobs into the queue."""

    async def all_of_them() -> None:
        pool = await create_pool(SETTINGS)
        for _ in range(count):
            await pool.enqueue_job("nothing")
        await pool.aclose()

    asyncio.run(all_of_them())
