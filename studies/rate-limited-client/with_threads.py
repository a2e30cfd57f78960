"""The original client on threads: the adaptive buffer, dead letters, and a thread per key.

    python with_threads.py --url ...

It takes what all clients are told; see jobs.py.
"""

from __future__ import annotations

import os
import queue
import sys
import threading
import time

import requests
from jobs import READY, TIMEOUT_S, Book, Job, Nonces, arguments, named, now_ms
from limiters import Buffer


class Client:
    """The queue, the dead letters, and the workers."""

    def __init__(self, url: str, book: Book) -> None:
        """Nothing is queued."""
        self._url, self._book = url, book
        self.queue: queue.Queue[Job] = queue.Queue()
        self._dead: queue.Queue[Job] = queue.Queue()

    def bring_back(self) -> None:
        """Puts dead letters into the queue again."""
        while True:
            self.queue.put(self._dead.get())

    def work(self, key: str) -> None:
        """Sends with one key."""
        limiter, nonces, session = Buffer(), Nonces(), requests.Session()
        while True:
            job = self.queue.get()
            last = now_ms() + job.left_ms()
            while (now := now_ms()) <= last and (wait := limiter.wait_ms(now)):
                time.sleep(wait / 1000)
            if now > last:
                self._lose(job)
                continue
            limiter.sent(now)
            job.sent_ms = now
            form = {"api_key": key, "nonce": str(nonces.next()), "req_id": job.name}
            try:
                answer = session.get(self._url, data=form, timeout=TIMEOUT_S)
            except requests.RequestException:
                self._lose(job)
                continue
            limiter.answered(now_ms() - now)
            if answer.status_code == 200:
                self._book.ended(job, "done", answer.status_code)
            else:
                self._lose(job, answer.status_code)

    def _lose(self, job: Job, status: int | None = None) -> None:
        if job.once_more():
            self._dead.put(job)
        else:
            self._book.ended(job, "graveyard", status)


def main() -> None:
    """Deliver what comes, until nothing more does."""
    args = arguments().parse_args()
    client = Client(f"{args.url}/api/request", Book(args.out))
    for key in args.keys.split(","):
        threading.Thread(target=client.work, args=(key,), daemon=True).start()
    threading.Thread(target=client.bring_back, daemon=True).start()
    print(READY, flush=True)
    for line in sys.stdin:
        client.queue.put(named(line))
    # Not an orderly end, which would wait for answers.
    os._exit(0)


if __name__ == "__main__":
    main()
