"""The document's generator: makes a request, then sleeps a random whole number of milliseconds from 0 to 21.

    python send_generator.py --seconds S --seed N

Requests are lines for `weir send -`. At the end it says on stderr how many it has made.
"""

from __future__ import annotations

import argparse
import random
import sys
import time

LONGEST_MS = 21


def main() -> None:
    """Make requests for so many seconds."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--seed", type=int, required=True)
    args = parser.parse_args()
    dice = random.Random(args.seed)
    end, made = time.monotonic() + args.seconds, 0
    while time.monotonic() < end:
        sys.stdout.write(f'{{"id":"{made}"}}\n')
        sys.stdout.flush()
        made += 1
        time.sleep(dice.randint(0, LONGEST_MS) / 1000)
    print(made, file=sys.stderr)


if __name__ == "__main__":
    main()
