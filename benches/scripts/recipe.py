"""Delivers jobs as typical scripts do: aiohttp, aiolimiter for the declared limit, and tenacity for retries.

    python recipe.py JOBS.jsonl --url URL [--limit COUNT/SECONDS] [--at-once 256] [--seconds S]

Workers take jobs from a queue. Six attempts with random exponential waits of 1 to 60 s are the recommendation of
OpenAI's cookbook for rate limits; a Retry-After replaces the wait. Jobs without attempts left are given up. The output
is a line of JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Iterator
from importlib import metadata
from typing import Any

import aiohttp
import tenacity
from aiolimiter import AsyncLimiter

PACKAGES = ("aiohttp", "aiolimiter", "tenacity")
ATTEMPTS, LEAST_WAIT_S, MOST_WAIT_S = 6, 1, 60


class RejectedError(Exception):
    """Response to be retried.

    Attributes:
        retry_after_s: Wait in seconds from its Retry-After, or None.
    """

    def __init__(self, retry_after_s: float | None) -> None:
        """Make the error of a response."""
        super().__init__()
        self.retry_after_s = retry_after_s


_random_exponential = tenacity.wait_random_exponential(min=LEAST_WAIT_S, max=MOST_WAIT_S)


def wait_s(state: tenacity.RetryCallState) -> float:
    """Return the response's Retry-After, or a random exponential wait."""
    error = state.outcome.exception() if state.outcome else None
    asked = error.retry_after_s if isinstance(error, RejectedError) else None
    return asked if asked is not None else _random_exponential(state)


class Delivery:
    """Delivery of jobs, with counts of the results."""

    def __init__(self, jobs: list[dict[str, str]], args: argparse.Namespace) -> None:
        """Make a delivery that has not begun."""
        self._jobs: Iterator[dict[str, str]] = iter(jobs)
        self._url = args.url
        self._at_once = args.at_once
        count, _, per_s = (args.limit or "").partition("/")
        self._limiter = AsyncLimiter(float(count), float(per_s)) if count else None
        self.done = self.given_up = self.failed = 0

    async def run(self) -> None:
        """Deliver all jobs with `--at-once` workers."""
        connector = aiohttp.TCPConnector(limit=self._at_once)
        timeout = aiohttp.ClientTimeout(total=30)
        async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
            await asyncio.gather(*(self._work(session) for _ in range(self._at_once)))

    async def _work(self, session: aiohttp.ClientSession) -> None:
        for job in self._jobs:
            try:
                await self._deliver(session, job.get("url", self._url).replace("{id}", job["id"]))
                self.done += 1
            except (RejectedError, aiohttp.ClientError, TimeoutError):
                self.given_up += 1

    @tenacity.retry(wait=wait_s, stop=tenacity.stop_after_attempt(ATTEMPTS), reraise=True)
    async def _deliver(self, session: aiohttp.ClientSession, url: str) -> None:
        if self._limiter:
            await self._limiter.acquire()
        try:
            async with session.get(url) as response:
                await response.read()
                if response.status == 429 or response.status >= 500:
                    asked = response.headers.get("Retry-After")
                    raise RejectedError(float(asked) if asked else None)
        except (RejectedError, aiohttp.ClientError, TimeoutError):
            self.failed += 1
            raise


def main() -> None:
    """Deliver the jobs, then print the counts."""
    parser = argparse.ArgumentParser()
    parser.add_argument("jobs")
    parser.add_argument("--url", default="")
    parser.add_argument("--limit")
    parser.add_argument("--at-once", type=int, default=256)
    parser.add_argument("--seconds", type=float, default=600)
    args = parser.parse_args()
    with open(args.jobs) as file:
        delivery = Delivery([json.loads(line) for line in file], args)
    interrupted = False
    try:
        asyncio.run(asyncio.wait_for(delivery.run(), args.seconds))
    except (TimeoutError, asyncio.TimeoutError):
        interrupted = True
    said: dict[str, Any] = {
        "done": delivery.done,
        "dead_lettered": delivery.given_up,
        "expired": 0,
        "failed": delivery.failed,
        "interrupted": interrupted,
        "versions": ", ".join(f"{name} {metadata.version(name)}" for name in PACKAGES),
    }
    print(json.dumps(said))


if __name__ == "__main__":
    main()
