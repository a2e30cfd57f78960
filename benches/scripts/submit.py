"""Submits jobs to a sender in Python in several ways, and prints the CPU time of the submitting thread for each.

    python submit.py COUNT

A line of JSON: microseconds of CPU for each job. Jobs stay in memory, and nothing is sent.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable

import weir

URL = "http://127.0.0.1:9/orders"
ROUNDS = 5

Submits = Callable[[weir.Sender, int], object]

FORMS: dict[str, Submits] = {
    "one by one": lambda sender, count: [sender.enqueue(id=number) for number in range(count)],
    "one by one, JSON bodies": lambda sender, count: [sender.enqueue(json={"amount": n}) for n in range(count)],
    "batches of URLs": lambda sender, count: sender.enqueue_many(["/orders"] * count),
    "batches of ids": lambda sender, count: sender.enqueue_many([{"id": number} for number in range(count)]),
    "batches of bytes": lambda sender, count: sender.enqueue_many([{"content": b"x" * 20} for _ in range(count)]),
    "batches of JSON bodies": lambda sender, count: sender.enqueue_many(
        [{"json": {"amount": n}} for n in range(count)]
    ),
    "json.dumps alone": lambda _, count: [json.dumps({"amount": number}).encode() for number in range(count)],
}


def cost_us(submits: Submits, count: int) -> float:
    """Measure CPU time of the thread per job; tickets are kept until the end of the measurement."""
    with weir.Sender(URL, limits="concurrency:1", max_queue=10 * count) as sender:
        # At most one request is in flight; responses are irrelevant.
        begun = time.thread_time()
        tickets = submits(sender, count)
        spent = time.thread_time() - begun
        del tickets
        sender.stop(grace=0)
    return spent / count * 1e6


def main() -> None:
    """Measure every way in turn, for several rounds; print medians."""
    count = int(sys.argv[1])
    costs: dict[str, list[float]] = {name: [] for name in FORMS}
    for _ in range(ROUNDS):
        for name, submits in FORMS.items():
            costs[name].append(cost_us(submits, count))
    print(json.dumps({name: sorted(each)[ROUNDS // 2] for name, each in costs.items()}))


if __name__ == "__main__":
    main()
