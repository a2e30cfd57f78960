"""The original server, in the forms that it tells of. All answer `GET /api/smart/{timeout}` with status 200.

    python server.py --form gathered|greedy|shared --work URL --ca FILE

- `gathered`, the first submission: two more requests only after the first has come to its end, and an answer only when
  both have; what is fast is judged by the `time` that the service claims
- `greedy`, the original improved form: two more requests after 300 ms, or as soon as the first has failed; the first
  good answer counts
- `shared`, not in the original: the same with one session, and so one pool of connections and one TLS context, for all

The first line on stdout says where it listens; `GET /counts` says how the calls went.
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

PATIENCE_MS = 300
TIMED_OUT = "Timeout Error"
Answer = dict[str, Any] | str
Attempt = Callable[[float], Coroutine[Any, Any, tuple[Answer, int]]]

counts: Counter[str] = Counter()
app = FastAPI()


def trust(ca: str) -> ssl.SSLContext:
    """As in the original, and our own service beside."""
    context = ssl.create_default_context(cafile=certifi.where())
    context.load_verify_locations(ca)
    return context


def over_new_session(work: str, ca: str) -> Attempt:
    """Each attempt has a session, a connection and a TLS context of its own, as in the original."""

    async def attempt(seconds: float) -> tuple[Answer, int]:
        connector = aiohttp.TCPConnector(ssl=trust(ca))
        session = aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=seconds))
        async with session:
            return await ask(session, work)

    return attempt


def over_one_session(work: str, ca: str) -> Attempt:
    """All attempts share one."""
    kept: list[aiohttp.ClientSession] = []

    async def attempt(seconds: float) -> tuple[Answer, int]:
        if not kept:
            kept.append(aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0, ssl=trust(ca))))
        return await ask(kept[0], work, timeout=aiohttp.ClientTimeout(total=seconds))

    return attempt


async def ask(session: aiohttp.ClientSession, work: str, **more: Any) -> tuple[Answer, int]:
    """What the service says, and its status; 0 if it is not good."""
    try:
        async with session.get(work, **more) as answer:
            return await answer.json(content_type=None), answer.status
    except asyncio.TimeoutError:
        return TIMED_OUT, 0
    except (aiohttp.ClientError, json.JSONDecodeError) as error:
        return str(error), 0


async def gathered(timeout_ms: int, attempt: Attempt) -> dict[str, Any]:
    """The first submission."""
    [(first, status)] = await asyncio.gather(attempt(timeout_ms / 1000))
    if status == 200 and isinstance(first, dict) and first["time"] <= PATIENCE_MS:
        return good(first, "case 1")
    counts["case 2" if status != 200 and first != TIMED_OUT else "case 3"] += 1
    left = (timeout_ms - PATIENCE_MS) / 1000
    others = await asyncio.gather(attempt(left), attempt(left))
    answers = [answer for answer, status in [(first, status), *others] if status == 200 and isinstance(answer, dict)]
    if answers:
        return good(min(answers, key=lambda answer: int(answer["time"])))
    return bad(TIMED_OUT in [first, *(answer for answer, _ in others)])


async def greedy(timeout_ms: int, attempt: Attempt) -> dict[str, Any]:
    """The improved form."""
    first = asyncio.create_task(attempt(timeout_ms / 1000))
    began, spent_ms = time.monotonic(), PATIENCE_MS
    try:
        answer, status = await asyncio.wait_for(asyncio.shield(first), PATIENCE_MS / 1000)
        if status == 200 and isinstance(answer, dict):
            return good(answer, "case 1")
        counts["case 2"] += 1
        spent_ms = int((time.monotonic() - began) * 1000)
    except asyncio.TimeoutError:
        counts["case 3"] += 1
    left = (timeout_ms - spent_ms) / 1000
    tasks = [first, asyncio.create_task(attempt(left)), asyncio.create_task(attempt(left))]
    for task in asyncio.as_completed(tasks):
        answer, status = await task
        if status == 200 and isinstance(answer, dict):
            return good(answer)
        if answer == TIMED_OUT:
            return bad(timed_out=True)
    return bad(timed_out=False)


def good(answer: dict[str, Any], case: str | None = None) -> dict[str, Any]:
    """The service's answer, and that it is one."""
    counts["success"] += 1
    if case:
        counts[case] += 1
    return answer | {"message": "SUCCESS"}


def bad(timed_out: bool) -> dict[str, str]:
    """There was no good one."""
    counts["error"] += 1
    if timed_out:
        counts["case 4"] += 1
    return {"message": "ERROR"}


def set_up(form: str, work: str, ca: str) -> None:
    """The routes."""
    attempt = over_one_session(work, ca) if form == "shared" else over_new_session(work, ca)
    answer = gathered if form == "gathered" else greedy

    @app.get("/counts")
    async def tell() -> dict[str, int]:
        return dict(counts)

    @app.get("/api/smart/{timeout}")
    async def smart(timeout: str) -> dict[str, Any]:
        if not timeout.isdecimal():
            return {"message": "Endpoint timeout parameter should be INTEGER"}
        if int(timeout) <= PATIENCE_MS:
            return {"message": f"Endpoint timeout parameter should be above {PATIENCE_MS}"}
        return await answer(int(timeout), attempt)


def main() -> None:
    """Serve until told to end."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--form", required=True, choices=["gathered", "greedy", "shared"])
    parser.add_argument("--work", required=True, help="the URL of the service")
    parser.add_argument("--ca", required=True, help="whom to trust there")
    args = parser.parse_args()
    set_up(args.form, args.work, args.ca)
    listener = socket.create_server(("127.0.0.1", 0), backlog=2048)
    print(json.dumps({"listening": f"http://127.0.0.1:{listener.getsockname()[1]}"}), flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False)).run(sockets=[listener])


if __name__ == "__main__":
    main()
