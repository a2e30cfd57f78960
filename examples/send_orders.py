"""Deliver a thousand orders through an API with a limit of 20 per second and key.

python examples/send_orders.py [COUNT]
"""

import asyncio
import sys

import weir

KEYS = [f"key-{n}-0123456789" for n in range(10)]


async def main(count: int) -> None:
    """Send orders to a test server; with a file as store they would survive a crash."""
    orders = (weir.Job(id=f"order-{n}", ttl="10m") for n in range(count))
    with weir.serve("ratelimit", key=KEYS, limit="20/1s") as service:
        async with weir.AsyncSender(
            service.url + "/api/request?api_key={key}&nonce={nonce}&req_id={id}",
            keys=KEYS,
            limits="20/1s",
            delay_bound="500ms",  # maximum one-way delay of a request
            ordered=True,  # the service requires growing nonces per key
        ) as sender:
            async for result in sender.as_completed(orders):
                if not result.ok:
                    print(result)
            stats = sender.stats()
        print(f"{stats.done} delivered, {stats.rejected[429]} x 429, {stats.rejected[400]} x 400")


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000))
