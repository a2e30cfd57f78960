"""Run a part of the tests in Python, several at a time.

    python scripts/python_tests.py package|timed|wide [ARGUMENT]...

Arguments are those of pytest. A test's markers say where it stands (pyproject.toml): `wide` is for `make test-all`, and
what is `timed` runs one at a time, that of the package as a part of its own, after all others. No test has a second
chance. The exit code is that of pytest.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
# They wait, too; each file stays in one worker, which has its services and its browser. The order is that of
# conftest.py: what takes longest begins. A test that hangs ends its worker (pyproject.toml), and the run.
TOGETHER = [
    *("-n", str(3 * (os.cpu_count() or 1)), "--dist", "loadfile", "--no-loadscope-reorder"),
    *("--max-worker-restart", "0", "--durations=40", "--durations-min=5"),
]
NO_TESTS = 5
"""Exit code of pytest where no test was chosen."""


def pytest(chosen: str, *arguments: str) -> int:
    """Run the tests whose markers are these; return pytest's exit code."""
    command = [sys.executable, "-m", "pytest", "-q", "-m", f"{chosen} and not soak", *arguments]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


def main() -> int:
    """Run the tests of a part."""
    parser = argparse.ArgumentParser(description="Run a part of the tests in Python.")
    parser.add_argument("part", choices=["package", "timed", "wide"])
    args, more = parser.parse_known_args()
    # A job in the background of a script ignores it, and so would the programs of the tests up to their own handler.
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    match args.part:
        case "package":
            codes = [pytest("not wide and not timed", *TOGETHER, *more)]
        case "timed":
            codes = [pytest("not wide and timed", *more)]
        case _:
            codes = [pytest("wide and not timed", *TOGETHER, *more)]
            alone = pytest("wide and timed", *more)
            codes.append(0 if alone == NO_TESTS else alone)
    return next((code for code in codes if code), 0)


if __name__ == "__main__":
    sys.exit(main())
