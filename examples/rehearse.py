"""Try a client against a flaky upstream that fails the same way in every run.

python examples/rehearse.py
"""

import json
from urllib.request import urlopen

import weir

CALLS = 60


def ask(url: str, tries: int) -> bool:
    """Whether one of so many tries gets a right answer: status 200, and a body that is JSON."""
    for _ in range(tries):
        try:
            with urlopen(url, timeout=0.5) as answer:
                json.load(answer)
            return True
        except (OSError, ValueError):
            continue
    return False


def main() -> None:
    """Count right answers with one try, and with three."""
    mix = {"good": 6, "garbage": 1, "error": 1, "limited": 1, "reset": 1}
    for tries in (1, 3):
        with weir.serve("work", mix=mix, delay="1ms..5ms", seed=7) as upstream:
            right = sum(ask(upstream.url + "/api/work", tries) for _ in range(CALLS))
            asked = upstream.stats()["requests"]
        print(f"{tries} tries: {right} of {CALLS} calls right, {asked} requests")


if __name__ == "__main__":
    main()
