"""Fast service that stalls for 1 s in every 5 s, as with a garbage collection, a deployment or a lock.

uvicorn --app-dir examples service:app --port 8000
"""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI

PERIOD_S = 5.0
PAUSE_S = 1.0


async def stall() -> None:
    """Block the event loop, and so every request, periodically."""
    while True:
        await asyncio.sleep(PERIOD_S - PAUSE_S)
        time.sleep(PAUSE_S)


@asynccontextmanager
async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
    """Stall periodically while the service runs."""
    pauses = asyncio.create_task(stall())
    yield
    pauses.cancel()


app = FastAPI(lifespan=lifespan)


@app.get("/")
async def hello() -> dict[str, str]:
    """Respond at once, except during a pause."""
    return {"message": "hello"}
