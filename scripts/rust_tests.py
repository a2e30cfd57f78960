"""Run the test programs in Rust, or a part of their tests, as many programs at a time as there are cores.

    python scripts/rust_tests.py unit|integration|timed|wide

Where a test stands says when it runs. One in a module, or a program, named `wide` is for `make test-all`: it needs what
`make test` does not install, or is about more than a change of the code. One in a module, or a program, named `timed`
judges a duration, an evenness or a lateness: it runs after all others, one at a time; those of a program of that name,
which wait, beside one another. No test has a second chance.

A program is shown when it has ended. Towards its end a test or two go on alone, and leave a core to the next program.
Cargo's choice, `--lib` or `--test '*'`, builds libraries without tests as tests, too: the Python extension among them.
The exit code is 1 if a test failed, and 101 if they could not be built.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = ["--workspace"]
# Modules and programs that are named for when their tests run.
WIDE, TIMED = "wide", "timed"
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
    name: str

    def environment(self) -> dict[str, str]:
        """Return what `cargo test` would set for it, as far as a test may ask for it."""
        return os.environ | {"CARGO_MANIFEST_DIR": str(self.folder)}

    def title(self) -> str:
        """Return its source, by which it is called."""
        return str(self.source.relative_to(ROOT))


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
            name=message["target"]["name"],
        )
        for message in messages
        if message["reason"] == "compiler-artifact" and message["executable"] and message["profile"]["test"]
    ]
    return sorted(found, key=lambda program: (program.folder, program.source))


def part_of(name: str, test: str) -> str:
    """Return the part of the suite that a test of a program of this name is in, by its path: wide, timed or none."""
    path = {name, *test.split("::")[:-1]}
    return next((part for part in (WIDE, TIMED) if part in path), "")


def tests_of(program: Program, part: str) -> list[str]:
    """Return the tests of a program that are in a part of the suite."""
    command = [str(program.path), "--list", "--format=terse"]
    listed = subprocess.run(
        command, cwd=program.folder, env=program.environment(), check=True, stdout=subprocess.PIPE, text=True
    )
    tests = re.findall(r"^(.+): test$", listed.stdout, re.MULTILINE)
    return [test for test in tests if part_of(program.name, test) == part]


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


def run_part(program: Program, part: str) -> str | None:
    """Run the tests of a program that are in a part, print what it has printed, and return why it failed."""
    tests = tests_of(program, part)
    if not tests:
        return None
    # A test that hangs is in a program that was started and not shown.
    print(f"     Started {program.title()}", flush=True)
    alone = ["--test-threads=1"] if part == TIMED and program.name != TIMED else []
    code, text = run(program, "--exact", *tests, *alone)
    with SHOWN:
        print(f"\n     Running {program.title()}\n{text}", flush=True)
        if code is None:
            print(f"{program.title()} did not end within {PROGRAM_TIMEOUT_S} s. These tests hang:")
            print(*(f"test {test} ... FAILED" for test in unfinished(text)), sep="\n", flush=True)
        elif code and "... FAILED" not in text:
            # It died, by a signal or in a thread of its own; the list of failures has its name.
            print(f"test {program.title()} ... FAILED", flush=True)
    return None if code == 0 else f"{program.title()} ended with {code}"


def main() -> int:
    """Run the tests of a part; continue after a failure."""
    parser = argparse.ArgumentParser(description="Run the test programs in Rust, or a part of their tests.")
    parser.add_argument("part", choices=["unit", "integration", TIMED, WIDE])
    asked = parser.parse_args().part
    # A job in the background of a script ignores it, and so would the programs of the tests up to their own handler.
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        chosen = programs(PACKAGES)
    except subprocess.CalledProcessError:
        return 101
    part = asked if asked in {TIMED, WIDE} else ""
    if not part:
        chosen = [program for program in chosen if program.is_integration == (asked == "integration")]
    # The largest one takes longest, and begins.
    chosen.sort(key=lambda program: -program.path.stat().st_size)
    with ThreadPoolExecutor(1 if part == TIMED else os.cpu_count()) as pool:
        wrong = [why for why in pool.map(lambda program: run_part(program, part), chosen) if why]
    if wrong:
        print(*wrong, sep="\n", file=sys.stderr)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
