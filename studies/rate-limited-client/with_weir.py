"""Client with weir's Python senders.

    python with_weir.py --sender AsyncSender|Sender --url ...

Arguments and results are those of the other clients; see jobs.py.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from jobs import READY, TTL_MS, Results, arguments, named

import weir


async def awaited(options: dict[str, Any]) -> None:
    """Deliver from an event loop."""
    lines = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    async with weir.AsyncSender(**options) as sender:
        print(READY, flush=True)
        async for line in lines:
            await sender.enqueue(id=named(line).name)


def threaded(options: dict[str, Any]) -> None:
    """Deliver from the main thread."""
    with weir.Sender(**options) as sender:
        print(READY, flush=True)
        for line in sys.stdin:
            sender.enqueue(id=named(line).name)


def main() -> None:
    """Deliver the requests on stdin, until it ends."""
    parser = arguments()
    parser.add_argument("--sender", required=True, choices=["AsyncSender", "Sender"])
    args = parser.parse_args()
    results = Results(args.out)
    options: dict[str, Any] = {
        "url": f"{args.url}/api/request?api_key={{key}}&nonce={{nonce}}&req_id={{id}}",
        "keys": args.keys.split(","),
        "limits": "20/1s",
        "delay_bound": "50ms",
        "ordered": True,
        "keepalive": False,
        "ttl": f"{TTL_MS}ms",
        "on_result": lambda result: results.write(result.to_dict()),
    }
    if args.sender == "Sender":
        threaded(options)
    else:
        asyncio.run(awaited(options))


if __name__ == "__main__":
    main()
