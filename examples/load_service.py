"""Measure a service at a fixed rate, and check its objectives.

python examples/load_service.py http://localhost:8000/
"""

import sys

import weir


def main(url: str) -> int:
    """Send 100 requests per second for 2 s, independent of responses."""
    try:
        run = weir.load(url, rate=100, duration="2s", slo=["p99<2s", "errors<1%"])
    except weir.WeirError as error:
        print(error, file=sys.stderr)
        return 2
    print(run)
    for interval in run.series:
        print(f"second {interval.t_s:2.0f}: {interval.ok:4d} responses, p99 {interval.p99_ms:7.1f} ms")
    return 0 if all(objective.ok for objective in run.slo) else 1


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(f"usage: {sys.argv[0]} URL")
    sys.exit(main(sys.argv[1]))
