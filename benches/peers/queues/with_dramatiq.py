"""Jobs that do nothing, with Dramatiq."""

import dramatiq
from dramatiq.brokers.redis import RedisBroker
from marks import URL, mark

dramatiq.set_broker(RedisBroker(url=URL))


@dramatiq.actor
def nothing() -> None:
    """What a job does."""
    mark()


def enqueue(count: int) -> None:
    """Puts so many jobs into the queue."""
    for _ in range(count):
        nothing.send()
