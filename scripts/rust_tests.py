"""Run the test programs in Rust of one kind, as many at a time as there are cores.

    python scripts/rust_tests.py unit|integration

A program is shown when it has ended. Towards its end a test or two go on alone, and leave a core to the next program.
An integration test that fails is run again alone (reruns.py); unit tests have no clock but their own. Cargo's choice,
`--lib` or `--test '*'`, builds libraries without tests as tests, too: the Python extension among them. The exit code is
1 if a test failed, and 101 if they could not be built.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import reruns

ROOT = Path(__file__).parents[1]
PACKAGES = ["--workspace"]
# Programs that run after all others, one by one: they measure, or have a bound on delays.
ALONE = ("crates/gate/call/tests/call_cost.rs", "crates/cli/tests/redis/main.rs")
# The longest one begins.
LONGEST = "crates/cli/tests/it/main.rs"
# Seconds within which a program ends; the longest one takes a third of it with both cores busy.
PROGRAM_TIMEOUT_S = 1200


@dataclass(frozen=True)
class Program:
    """A test program."""

    path: Path
    folder: Path
    """Of its package, where it runs."""
    source: Path
    is_integration: bool

    def environment(self) -> dict[str, str]:
        """Return what `cargo test` would set for it, as far as a test may ask for it."""
        return os.environ | {"CARGO_MANIFEST_DIR": str(self.folder)}


def programs(packages: list[str]) -> list[Program]:
    """Build the test programs of these packages, by the flags of cargo for them, and return them in its order."""
    command = ["cargo", "test", "--locked", "--no-run", "--message-format=json-render-diagnostics", *packages]
    built = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    messages = [json.loads(line) for line in built.stdout.splitlines() if line.startswith("{")]
    found = [
        Program(
            path=Path(message["executable"]),
            folder=Path(message["manifest_path"]).parent,
            source=Path(message["target"]["src_path"]),
            is_integration=message["target"]["kind"] == ["test"],
        )
        for message in messages
        if message["reason"] == "compiler-artifact" and message["executable"] and message["profile"]["test"]
    ]
    return sorted(found, key=lambda program: (program.folder, program.source))


SHOWN = threading.Lock()


def unfinished(output: str) -> list[str]:
    """Return the tests that a program has named as slow and that have no result in its output."""
    slow = re.findall(r"^test (\S+) has been running for over", output, re.MULTILINE)
    ended = set(re.findall(r"^test (\S+) \.\.\. ", output, re.MULTILINE))
    return [test for test in slow if test not in ended]


def run(program: Program, *arguments: str, timeout: float = PROGRAM_TIMEOUT_S) -> tuple[int | None, str]:
    """Return the exit code of a program, none if it did not end and was killed, and what it has printed."""
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as output:
        # A file, and not a pipe, which a process that is left behind would keep open.
        code = None
        # What it has started ends with it.
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = subprocess.run(
                [program.path, *arguments],
                cwd=program.folder,
                env=program.environment(),
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=timeout,
                check=False,
            ).returncode
        output.seek(0)
        return code, output.read()


@dataclass(frozen=True)
class Failure:
    """A program that failed."""

    why: str
    tests: list[str]
    """The failed tests, if it is enough that they pass alone."""


def run_whole(name: str, program: Program) -> Failure | None:
    """Run all tests of a program, and print what it has printed."""
    # A test that hangs is in a program that was started and not shown.
    print(f"     Started {name}", flush=True)
    code, text = run(program)
    with SHOWN:
        print(f"\n     Running {name}\n{text}", flush=True)
        if code is None:
            print(f"{name} did not end within {PROGRAM_TIMEOUT_S} s. These tests hang:")
            print(*(f"test {test} ... FAILED" for test in unfinished(text)), sep="\n", flush=True)
    if code == 0:
        return None
    tests = re.findall(r"^test (\S+)(?: - should panic)? \.\.\. FAILED$", text, re.MULTILINE)
    # A program whose tests have all ended says so. A property that does not hold is not the machine's doing.
    is_up_to_the_machine = (
        program.is_integration
        and code is not None
        and re.search(r"^test result: FAILED\.", text, re.MULTILINE)
        and "minimal failing input" not in text
    )
    return Failure(f"{name} ended with {code}", tests if is_up_to_the_machine else [])


def failed_again(name: str, program: Program, tests: list[str]) -> list[str]:
    """Run tests of a program alone, one by one, and return those that failed."""
    failed = []
    for test in tests:
        print(f"     Alone {name} {test}", flush=True)
        code, text = run(program, "--exact", test)
        if code != 0:
            failed.append(test)
            print(text, flush=True)
    return failed


def main() -> int:
    """Run the programs of a kind; continue after a failure."""
    parser = argparse.ArgumentParser(description="Run the test programs in Rust of one kind.")
    parser.add_argument("kind", choices=["unit", "integration"])
    kind = parser.parse_args().kind
    try:
        chosen = [program for program in programs(PACKAGES) if program.is_integration == (kind == "integration")]
    except subprocess.CalledProcessError:
        return 101
    named = {str(program.source.relative_to(ROOT)): program for program in chosen}
    together = sorted(named.keys() - set(ALONE), key=lambda name: (name != LONGEST, name))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        ended = list(pool.map(lambda name: (name, run_whole(name, named[name])), together))
    ended += [(name, run_whole(name, named[name])) for name in sorted(named.keys() & set(ALONE))]
    wrong = []
    for name, failure in ended:
        if failure is None:
            continue
        again = functools.partial(failed_again, name, named[name])
        if not failure.tests or reruns.failed_alone(failure.tests, again):
            wrong.append(failure.why)
    if wrong:
        print(*wrong, sep="\n", file=sys.stderr)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
