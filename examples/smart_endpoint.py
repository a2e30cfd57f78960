"""Endpoint with a deadline and hedging in front of a slow, unreliable upstream.

UPSTREAM=http://127.0.0.1:8080/api/work uvicorn --app-dir examples smart_endpoint:app
"""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, HTTPException, Path

import weir

UPSTREAM = os.environ.get("UPSTREAM", "http://127.0.0.1:8080/api/work")
SMART = weir.AsyncClient(
    hedge=weir.Hedge(after=0.3, attempts=2),  # no success after 300 ms, or a failure: two more attempts
    success=weir.Success(status=200, json=True),
    budget=None,
)


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Close the client at shutdown."""
    async with SMART:
        yield


app = FastAPI(lifespan=lifespan)


@app.get("/api/smart/{timeout}")
async def smart(timeout: int = Path(ge=1, le=60_000)) -> Any:
    """Call the upstream; respond within `timeout` milliseconds."""
    try:
        return (await SMART.get(UPSTREAM, deadline=timeout / 1000)).json()
    except weir.ClientError as error:
        raise HTTPException(504 if isinstance(error, weir.DeadlineExceeded) else 502, str(error)) from error
