"""The reference generator: makes a request, then sleeps a random whole number of milliseconds.

    python generator.py --seconds S --seed N

Requests are lines for `weir send -`. At the end the number of requests is on stderr.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Iterator

MAX_SLEEP_MS = 21


def requests(seconds: float, seed: int, max_sleep_ms: int = MAX_SLEEP_MS) -> Iterator[str]:
    """Yield names of requests at the times at which they are made."""
    rng = random.Random(seed)
    end, made = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        yield str(made)
        made += 1
        time.sleep(rng.randint(0, max_sleep_ms) / 1000)


def main() -> None:
    """Make requests for the given time."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--seed", type=int, required=True)
    args = parser.parse_args()
    made = 0
    for name in requests(args.seconds, args.seed):
        sys.stdout.write(f'{{"id":"{name}"}}\n')
        sys.stdout.flush()
        made += 1
    print(made, file=sys.stderr)


if __name__ == "__main__":
    main()
