"""A thousand orders through an API that allows each key 20 per second, and blocks who asks too often.

python examples/send_orders.py [HOW MANY]
"""

import asyncio
import sys

import weir

KEYS = [f"key-{n}-0123456789" for n in range(10)]


async def main(count: int) -> None:
    """Send orders to an exchange that is started for it; run it with a file as store to have them survive a crash."""
    orders = (weir.Job(id=f"order-{n}", ttl="10m") for n in range(count))
    with weir.serve("exchange", key=KEYS, limit="20/1s") as exchange:
        async with weir.AsyncSender(
            exchange.url + "/api/request?api_key={key}&nonce={nonce}&req_id={id}",
            keys=KEYS,
            limits="20/1s",
            delay_bound="500ms",  # a request is never longer on its way
            ordered=True,  # the exchange wants the nonces of a key in their order
        ) as sender:
            async for result in sender.as_completed(orders):
                if not result.ok:
                    print(result)
            tally = sender.tally()
        print(f"{tally.done} delivered, {tally.refused[429]} x 429, {tally.refused[400]} x 400")


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000))
