"""Jobs that do nothing, with Celery: results are not kept."""

from celery import Celery
from marks import URL, mark

app = Celery("with_celery", broker=URL)
app.conf.update(task_ignore_result=True, worker_hijack_root_logger=False)


@app.task
def nothing() -> None:
    """What a job does."""
    mark()


def enqueue(count: int) -> None:
    """Puts so many jobs into the queue."""
    with app.producer_pool.acquire(block=True) as producer:
        for _ in range(count):
            nothing.apply_async(producer=producer)
