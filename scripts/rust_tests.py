"""Run the test programs in Rust of one kind, as many at a time as there are cores.

    python scripts/rust_tests.py unit|integration

A program is shown when it has ended. Towards its end a test or two go on alone, and leave a core to the next program.
Cargo's own choice, `--lib` or `--test '*'`, builds libraries without tests as tests, too: the Python extension among
them. The exit code is 1 if a program failed, and 101 if they could not be built.
"""

from __future__ import annotations

import argparse
import contextlib
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

ROOT = Path(__file__).parents[1]
PACKAGES = ["--workspace"]
# Programs that run after all others, one by one: they measure, or have a bound on delays.
ALONE = ("crates/call/tests/call_cost.rs", "crates/cli/tests/redis/main.rs")
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


def run(name: str, program: Program, timeout: float = PROGRAM_TIMEOUT_S) -> int:
    """Run a program, print what it has printed, and return its exit code; one that does not end is killed."""
    # A test that hangs is in a program that was started and not shown.
    print(f"     Started {name}", flush=True)
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as output:
        # A file, and not a pipe, which a process that is left behind would keep open.
        code = None
        # What it has started ends with it.
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = subprocess.run(
                [program.path],
                cwd=program.folder,
                env=program.environment(),
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=timeout,
                check=False,
            ).returncode
        output.seek(0)
        text = output.read()
        with SHOWN:
            print(f"\n     Running {name}\n{text}", flush=True)
            if code is None:
                print(f"{name} did not end within {timeout:g} s. These tests hang:")
                print(*(f"test {test} ... FAILED" for test in unfinished(text)), sep="\n", flush=True)
    return 1 if code is None else code


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
    failed = []
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for name, code in pool.map(lambda name: (name, run(name, named[name])), together):
            failed += [f"{name} ended with {code}"] * bool(code)
    for name in sorted(named.keys() & set(ALONE)):
        code = run(name, named[name])
        failed += [f"{name} ended with {code}"] * bool(code)
    if failed:
        print(*failed, sep="\n", file=sys.stderr)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
