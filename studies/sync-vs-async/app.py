"""A service with a slow handler and a fast one, each in several variants."""

import asyncio
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import anyio.to_thread
from fastapi import FastAPI

SLOW = {"message": "Synchronous Hello World!"}
FAST = {"message": "Asynchronous Hello World!"}
SECOND = 1.0


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Set the number of threads for plain `def` handlers; the framework's default is 40."""
    threads = int(os.environ.get("THREADS", "40"))
    anyio.to_thread.current_default_thread_limiter().total_tokens = threads
    app.state.own_pool = anyio.CapacityLimiter(threads)
    yield


app = FastAPI(lifespan=lifespan)


# --- The slow one: it waits for a second, as for a database.


@app.get("/sync-loadtest", response_model=None)
def slow_in_a_thread() -> dict[str, str]:
    """Occupy a thread of the pool that all plain handlers share."""
    time.sleep(SECOND)
    return SLOW


@app.get("/sync-annotated")
def slow_in_a_thread_twice() -> dict[str, str]:
    """Return a value that is checked against the annotation, on a thread that is queued for again."""
    time.sleep(SECOND)
    return SLOW


@app.get("/sync-own-pool")
async def slow_in_a_pool_of_its_own() -> dict[str, str]:
    """Occupy a thread of a separate pool, for blocking code."""
    await anyio.to_thread.run_sync(time.sleep, SECOND, limiter=app.state.own_pool)
    return SLOW


@app.get("/sync-awaited")
async def slow_without_a_thread() -> dict[str, str]:
    """Wait without a thread."""
    await asyncio.sleep(SECOND)
    return SLOW


# --- The fast one.


@app.get("/async-in-name", response_model=None)
def fast_in_a_thread() -> dict[str, str]:
    """Respond from a plain handler, in spite of the route's name: it needs a thread, for a moment."""
    return FAST


@app.get("/async-at-once")
async def fast_without_a_thread() -> dict[str, str]:
    """Respond from the event loop."""
    return FAST
