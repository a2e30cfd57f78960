"""The original client on threads: the adaptive buffer, retries, and a thread per key.

    python with_threads.py --url ...

Arguments: see jobs.py.
"""

from __future__ import annotations

import os
import queue
import sys
import threading
import time

import requests
from jobs import READY, TIMEOUT_S, Job, Nonces, Results, arguments, named, now_ms
from limiters import Buffer


class Client:
    """The queue, the requests to retry, and the workers."""

    def __init__(self, url: str, results: Results) -> None:
        """Start with an empty queue."""
        self._url, self._results = url, results
        self.queue: queue.Queue[Job] = queue.Queue()
        self._retrying: queue.Queue[Job] = queue.Queue()

    def bring_back(self) -> None:
        """Queue expired and failed requests again."""
        while True:
            self.queue.put(self._retrying.get())

    def work(self, key: str) -> None:
        """Send with one key."""
        limiter, nonces, session = Buffer(), Nonces(), requests.Session()
        while True:
            job = self.queue.get()
            last = now_ms() + job.left_ms()
            while (now := now_ms()) <= last and (wait := limiter.wait_ms(now)):
                time.sleep(wait / 1000)
            if now > last:
                self._fail(job)
                continue
            limiter.sent(now)
            job.sent_ms = now
            form = {"api_key": key, "nonce": str(nonces.next()), "req_id": job.name}
            try:
                response = session.get(self._url, data=form, timeout=TIMEOUT_S)
            except requests.RequestException:
                self._fail(job)
                continue
            limiter.responded(now_ms() - now)
            if response.status_code == 200:
                self._results.ended(job, "done", response.status_code)
            else:
                self._fail(job, response.status_code)

    def _fail(self, job: Job, status: int | None = None) -> None:
        if job.once_more():
            self._retrying.put(job)
        else:
            self._results.ended(job, "dead_lettered", status)


def main() -> None:
    """Deliver the requests on stdin, until it ends."""
    args = arguments().parse_args()
    client = Client(f"{args.url}/api/request", Results(args.out))
    for key in args.keys.split(","):
        threading.Thread(target=client.work, args=(key,), daemon=True).start()
    threading.Thread(target=client.bring_back, daemon=True).start()
    print(READY, flush=True)
    for line in sys.stdin:
        client.queue.put(named(line))
    # Ends at once, without waiting for responses.
    os._exit(0)


if __name__ == "__main__":
    main()
