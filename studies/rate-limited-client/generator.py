"""The reference generator: makes a request, then sleeps a random whole number of milliseconds.

    python generator.py --seconds S --seed N

Requests are lines for `weir send -`. At the end it says on stderr how many it has made.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Iterator

LONGEST_MS = 21


def requests(seconds: float, seed: int, longest_ms: int = LONGEST_MS) -> Iterator[str]:
    """The names of requests, each when it is made."""
    dice = random.Random(seed)
    end, made = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        yield str(made)
        made += 1
        time.sleep(dice.randint(0, longest_ms) / 1000)


def main() -> None:
    """Make requests for so many seconds."""
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
