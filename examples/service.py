"""A service that is quick, but stands still for 1 s in every 5 s, as a garbage collection, a deploy or a lock would.

uvicorn --app-dir examples service:app --port 8000
"""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI

PERIOD_S = 5.0
PAUSE_S = 1.0


async def stand_still() -> None:
    """Block the event loop, and with it every request, now and then."""
    while True:
        await asyncio.sleep(PERIOD_S - PAUSE_S)
        time.sleep(PAUSE_S)


@asynccontextmanager
async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
    """Pause from start to end."""
    pauses = asyncio.create_task(stand_still())
    yield
    pauses.cancel()


app = FastAPI(lifespan=lifespan)


@app.get("/")
async def hello() -> dict[str, str]:
    """Answer at once, unless it is time for a pause."""
    return {"message": "hello"}
