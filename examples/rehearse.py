"""Test a client against an unreliable upstream that fails the same way in every run.

python examples/rehearse.py
"""

import json
from urllib.request import urlopen

import weir

CALLS = 60


def call(url: str, attempts: int) -> bool:
    """Return whether an attempt gets a valid response: status 200, and a JSON body."""
    for _ in range(attempts):
        try:
            with urlopen(url, timeout=0.5) as response:
                json.load(response)
            return True
        except (OSError, ValueError):
            continue
    return False


def main() -> None:
    """Count successful calls with one attempt, and with up to three."""
    mix = {"good": 6, "garbage": 1, "error": 1, "limited": 1, "reset": 1}
    for attempts in (1, 3):
        with weir.serve("work", mix=mix, delay="1ms..5ms", seed=7) as upstream:
            successes = sum(call(upstream.url + "/api/work", attempts) for _ in range(CALLS))
            requests = upstream.stats()["requests"]
        print(f"attempts {attempts}: {successes} of {CALLS} calls succeeded, {requests} requests")


if __name__ == "__main__":
    main()
