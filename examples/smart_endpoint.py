"""A smart endpoint: an answer in time from an upstream that is slow and flaky.

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
    hedge=weir.Hedge(after=0.3, copies=2),  # after 300 ms, or when the first attempt fails, two more
    success=weir.Success(status=200, json=True),
    budget=None,
)


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Close connections at the end."""
    async with SMART:
        yield


app = FastAPI(lifespan=lifespan)


@app.get("/api/smart/{timeout}")
async def smart(timeout: int = Path(ge=1, le=60_000)) -> Any:
    """Ask upstream; answer within so many milliseconds."""
    try:
        return (await SMART.get(UPSTREAM, deadline=timeout / 1000)).json()
    except weir.ClientError as error:
        raise HTTPException(504 if isinstance(error, weir.DeadlineExceeded) else 502, str(error)) from error
