"""The original server, in the two forms of its report. All respond to `GET /api/smart/{timeout}` with status 200.

    python server.py --form gathered|greedy|shared --work URL --ca FILE

- `gathered`, the first submission: two more requests only after the first one has ended, and a response only after
  both have; whether a request was fast is judged by the `time` in the service's body
- `greedy`, the original improved form: two more requests after 300 ms, or as soon as the first has failed; the first
  success counts
- `shared`, not in the original: the same with one session, and so one connection pool and one TLS context, for all

The first line on stdout is the address; `GET /counts` returns the outcomes of the calls.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import socket
import ssl
import time
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any

import aiohttp
import certifi
import uvicorn
from fastapi import FastAPI

HEDGE_AFTER_MS = 300
TIMED_OUT = "Timeout Error"
Body = dict[str, Any] | str
Attempt = Callable[[float], Coroutine[Any, Any, tuple[Body, int]]]

counts: Counter[str] = Counter()
app = FastAPI()


def trust(ca: str) -> ssl.SSLContext:
    """Trust the authorities of the original, and that of the service."""
    context = ssl.create_default_context(cafile=certifi.where())
    context.load_verify_locations(ca)
    return context


def over_new_session(work: str, ca: str) -> Attempt:
    """Make attempts with a session, a connection and a TLS context each, as in the original."""

    async def attempt(seconds: float) -> tuple[Body, int]:
        connector = aiohttp.TCPConnector(ssl=trust(ca))
        session = aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=seconds))
        async with session:
            return await get(session, work)

    return attempt


def over_one_session(work: str, ca: str) -> Attempt:
    """Make attempts that share a session."""
    shared: list[aiohttp.ClientSession] = []

    async def attempt(seconds: float) -> tuple[Body, int]:
        if not shared:
            shared.append(aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0, ssl=trust(ca))))
        return await get(shared[0], work, timeout=aiohttp.ClientTimeout(total=seconds))

    return attempt


async def get(session: aiohttp.ClientSession, work: str, **more: Any) -> tuple[Body, int]:
    """Return the service's body and status; an error with status 0."""
    try:
        async with session.get(work, **more) as response:
            return await response.json(content_type=None), response.status
    except asyncio.TimeoutError:
        return TIMED_OUT, 0
    except (aiohttp.ClientError, json.JSONDecodeError) as error:
        return str(error), 0


async def gathered(timeout_ms: int, attempt: Attempt) -> dict[str, Any]:
    """Handle a call as the first submission does."""
    [(first, status)] = await asyncio.gather(attempt(timeout_ms / 1000))
    if status == 200 and isinstance(first, dict) and first["time"] <= HEDGE_AFTER_MS:
        return good(first, "case 1")
    counts["case 2" if status != 200 and first != TIMED_OUT else "case 3"] += 1
    left = (timeout_ms - HEDGE_AFTER_MS) / 1000
    others = await asyncio.gather(attempt(left), attempt(left))
    bodies = [body for body, status in [(first, status), *others] if status == 200 and isinstance(body, dict)]
    if bodies:
        return good(min(bodies, key=lambda body: int(body["time"])))
    return bad(TIMED_OUT in [first, *(body for body, _ in others)])


async def greedy(timeout_ms: int, attempt: Attempt) -> dict[str, Any]:
    """Handle a call as the improved form does."""
    first = asyncio.create_task(attempt(timeout_ms / 1000))
    began, spent_ms = time.monotonic(), HEDGE_AFTER_MS
    try:
        body, status = await asyncio.wait_for(asyncio.shield(first), HEDGE_AFTER_MS / 1000)
        if status == 200 and isinstance(body, dict):
            return good(body, "case 1")
        counts["case 2"] += 1
        spent_ms = int((time.monotonic() - began) * 1000)
    except asyncio.TimeoutError:
        counts["case 3"] += 1
    left = (timeout_ms - spent_ms) / 1000
    tasks = [first, asyncio.create_task(attempt(left)), asyncio.create_task(attempt(left))]
    for task in asyncio.as_completed(tasks):
        body, status = await task
        if status == 200 and isinstance(body, dict):
            return good(body)
        if body == TIMED_OUT:
            return bad(timed_out=True)
    return bad(timed_out=False)


def good(body: dict[str, Any], case: str | None = None) -> dict[str, Any]:
    """Count a success; return the service's body with a message."""
    counts["success"] += 1
    if case:
        counts[case] += 1
    return body | {"message": "SUCCESS"}


def bad(timed_out: bool) -> dict[str, str]:
    """Count an error; return its message."""
    counts["error"] += 1
    if timed_out:
        counts["case 4"] += 1
    return {"message": "ERROR"}


def set_up(form: str, work: str, ca: str) -> None:
    """Add the routes."""
    attempt = over_one_session(work, ca) if form == "shared" else over_new_session(work, ca)
    handle = gathered if form == "gathered" else greedy

    @app.get("/counts")
    async def get_counts() -> dict[str, int]:
        return dict(counts)

    @app.get("/api/smart/{timeout}")
    async def smart(timeout: str) -> dict[str, Any]:
        if not timeout.isdecimal():
            return {"message": "Endpoint timeout parameter should be INTEGER"}
        if int(timeout) <= HEDGE_AFTER_MS:
            return {"message": f"Endpoint timeout parameter should be above {HEDGE_AFTER_MS}"}
        return await handle(int(timeout), attempt)


def main() -> None:
    """Serve until terminated."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--form", required=True, choices=["gathered", "greedy", "shared"])
    parser.add_argument("--work", required=True, help="URL of the service")
    parser.add_argument("--ca", required=True, help="CA certificate of the service")
    args = parser.parse_args()
    set_up(args.form, args.work, args.ca)
    listener = socket.create_server(("127.0.0.1", 0), backlog=2048)
    print(json.dumps({"listening": f"http://127.0.0.1:{listener.getsockname()[1]}"}), flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False)).run(sockets=[listener])


if __name__ == "__main__":
    main()
