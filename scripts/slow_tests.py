"""List the tests that take long, slowest first.

    python scripts/slow_tests.py [--seconds 5] [--package weir-send]...

Rust tests run by the programs that `cargo test` builds, Python tests by pytest; a time is that of the test while others
run beside it, as in `make test`. A failed test is listed too, and the exit code is then 1.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import rust_tests

ROOT = Path(__file__).parents[1]
# `test gate::closes ... ok <1.234s>`, as libtest prints it with --report-time.
RUST_LINE = re.compile(r"^test (?P<name>\S+)(?: - should panic)? \.\.\. (?P<end>\w+) <(?P<seconds>[\d.]+)s>$")
# `1.23s call     tests/test_gate.py::test_closes`, as pytest prints it with --durations.
PYTHON_LINE = re.compile(r"^(?P<seconds>[\d.]+)s (?:call|setup|teardown)\s+(?P<name>\S+)$")


@dataclass(frozen=True)
class TimedTest:
    """A test and its duration."""

    seconds: float
    name: str
    is_failed: bool


def main() -> int:
    """Run the tests and print the slow ones."""
    parser = argparse.ArgumentParser(description="List slow tests.")
    parser.add_argument("--seconds", type=float, default=5, help="shortest duration that is listed [%(default)s]")
    parser.add_argument("--package", action="append", default=[], help="only the Rust tests of this package")
    args = parser.parse_args()
    chosen = [flag for package in args.package for flag in ("--package", package)] or rust_tests.PACKAGES
    tests = [test for program in rust_tests.programs(chosen) for test in _rust(program)]
    if not args.package:
        tests += _python()
    tests.sort(key=lambda test: -test.seconds)
    for test in tests:
        if test.is_failed or test.seconds >= args.seconds:
            print(f"{test.seconds:7.1f} s  {test.name}{'  FAILED' if test.is_failed else ''}")
    print(f"{len(tests)} tests, {sum(test.seconds for test in tests):.0f} s in all")
    return int(any(test.is_failed for test in tests))


def _rust(program: rust_tests.Program) -> list[TimedTest]:
    # Durations are an unstable option of libtest, which this variable allows at run time.
    environment = program.environment() | {"RUSTC_BOOTSTRAP": "1"}
    environment.setdefault("RUST_TEST_THREADS", str(4 * (os.cpu_count() or 1)))
    command = [str(program.path), "-Zunstable-options", "--report-time"]
    done = subprocess.run(command, cwd=program.folder, env=environment, check=False, stdout=subprocess.PIPE, text=True)
    found = [RUST_LINE.match(line) for line in done.stdout.splitlines()]
    room = program.folder.relative_to(ROOT)
    return [
        TimedTest(float(match["seconds"]), f"{room}: {match['name']}", match["end"] != "ok") for match in found if match
    ]


def _python() -> list[TimedTest]:
    command = [sys.executable, "-m", "pytest", "-q", "--durations=0", "-rf"]
    done = subprocess.run(command, cwd=ROOT, check=False, stdout=subprocess.PIPE, text=True)
    found = [PYTHON_LINE.match(line) for line in done.stdout.splitlines()]
    failed = set(re.findall(r"^FAILED (\S+)", done.stdout, re.MULTILINE))
    return [TimedTest(float(match["seconds"]), match["name"], match["name"] in failed) for match in found if match]


if __name__ == "__main__":
    sys.exit(main())
