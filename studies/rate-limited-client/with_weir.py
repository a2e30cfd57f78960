"""The same through weir's senders in Python.

    python with_weir.py --sender AsyncSender|Sender --url ...

The exchange is the same, and so is what is said of the results.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from jobs import READY, TTL_MS, Book, arguments, named

import weir


async def awaited(options: dict[str, Any]) -> None:
    """From a loop."""
    lines = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    async with weir.AsyncSender(**options) as sender:
        print(READY, flush=True)
        async for line in lines:
            await sender.enqueue(id=named(line).name)


def threaded(options: dict[str, Any]) -> None:
    """From the main thread."""
    with weir.Sender(**options) as sender:
        print(READY, flush=True)
        for line in sys.stdin:
            sender.enqueue(id=named(line).name)


def main() -> None:
    """Deliver what comes, until nothing more does."""
    parser = arguments()
    parser.add_argument("--sender", required=True, choices=["AsyncSender", "Sender"])
    args = parser.parse_args()
    book = Book(args.out)
    options: dict[str, Any] = {
        "url": f"{args.url}/api/request?api_key={{key}}&nonce={{nonce}}&req_id={{id}}",
        "keys": args.keys.split(","),
        "limits": "20/1s",
        "delay_bound": "50ms",
        "ordered": True,
        "fresh": True,
        "ttl": f"{TTL_MS}ms",
        "on_result": lambda result: book.write(result.to_dict()),
    }
    if args.sender == "Sender":
        threaded(options)
    else:
        asyncio.run(awaited(options))


if __name__ == "__main__":
    main()
