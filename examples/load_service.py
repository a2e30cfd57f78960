"""Load a service as its users would, and say whether it keeps its promise.

python examples/load_service.py http://localhost:8000/
"""

import sys

import weir


def main(url: str) -> int:
    """Drive 100 requests per second for 2 s, whether or not answers come."""
    try:
        run = weir.load(url, rate=100, duration="2s", slo=["p99<2s", "errors<1%"])
    except weir.WeirError as error:
        print(error, file=sys.stderr)
        return 2
    print(run)
    for point in run.series:
        print(f"second {point.t_s:2.0f}: {point.ok:4d} answers, p99 {point.p99_ms:7.1f} ms")
    return 0 if all(objective.ok for objective in run.slo) else 1


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(f"usage: {sys.argv[0]} URL")
    sys.exit(main(sys.argv[1]))
