"""Delivers jobs to a rate-limited API by a sender in Python, for a time, and prints the number of delivered ones.

    python through.py AsyncSender|Sender --url URL --keys-file FILE --limit LIMIT --delay-bound TIME \
        --jobs N --seconds S

Nonces are ordered, and each request has a new connection. The output is a line of JSON, as that of `weir send`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections import Counter
from pathlib import Path
from typing import Any

import weir


async def awaited(options: dict[str, Any], jobs: int, seconds: float) -> None:
    """Send from an asyncio loop."""
    async with weir.AsyncSender(**options) as sender:
        await sender.enqueue_many([{"id": number} for number in range(jobs)])
        await asyncio.sleep(seconds)
        await sender.stop()


def threaded(options: dict[str, Any], jobs: int, seconds: float) -> None:
    """Send from the main thread."""
    with weir.Sender(**options) as sender:
        sender.enqueue_many([{"id": number} for number in range(jobs)])
        time.sleep(seconds)
        sender.stop()


def main() -> None:
    """Send, and count final states."""
    parser = argparse.ArgumentParser()
    parser.add_argument("sender", choices=["AsyncSender", "Sender"])
    parser.add_argument("--url", required=True)
    parser.add_argument("--keys-file", required=True, type=Path)
    parser.add_argument("--limit", required=True)
    parser.add_argument("--delay-bound", required=True)
    parser.add_argument("--jobs", required=True, type=int)
    parser.add_argument("--seconds", required=True, type=float)
    args = parser.parse_args()
    ends: Counter[str] = Counter()
    options: dict[str, Any] = {
        "url": args.url,
        "keys": args.keys_file.read_text().split(),
        "limits": args.limit,
        "delay_bound": args.delay_bound,
        "ordered": True,
        "keepalive": False,
        "on_result": lambda result: ends.update([result.state]),
    }
    if args.sender == "Sender":
        threaded(options, args.jobs, args.seconds)
    else:
        asyncio.run(awaited(options, args.jobs, args.seconds))
    print(json.dumps({"done": ends["done"], "ends": ends}))


if __name__ == "__main__":
    main()
