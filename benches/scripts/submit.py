"""Submits jobs to a sender in Python, in every form, and says what each took of the submitting thread's CPU.

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
    """CPU time of the thread for each job; the tickets are kept until the clock stands."""
    with weir.Sender(URL, limits="concurrency:1", queue=10 * count) as sender:
        # One request is under way at most, and none is needed here.
        begun = time.thread_time()
        kept = submits(sender, count)
        spent = time.thread_time() - begun
        del kept
        sender.stop(grace=0)
    return spent / count * 1e6


def main() -> None:
    """Every form in turn, several rounds; the median of each."""
    count = int(sys.argv[1])
    costs: dict[str, list[float]] = {name: [] for name in FORMS}
    for _ in range(ROUNDS):
        for name, submits in FORMS.items():
            costs[name].append(cost_us(submits, count))
    print(json.dumps({name: sorted(each)[ROUNDS // 2] for name, each in costs.items()}))


if __name__ == "__main__":
    main()
