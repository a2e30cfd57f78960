"""Run the test programs in Rust of one kind, one after the other, as `cargo test` runs all of them.

    python scripts/rust_tests.py unit|integration

Cargo's own choice, `--lib` or `--test '*'`, builds libraries without tests as tests, too: the Python extension among
them. The exit code is 1 if a program failed, and 101 if they could not be built.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
# Targets of fuzzing are built with instrumentation, by their script.
PACKAGES = ["--workspace", "--exclude", "weir-fuzz"]


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


def main() -> int:
    """Run the programs of a kind; continue after a failure."""
    parser = argparse.ArgumentParser(description="Run the test programs in Rust of one kind.")
    parser.add_argument("kind", choices=["unit", "integration"])
    kind = parser.parse_args().kind
    try:
        chosen = [program for program in programs(PACKAGES) if program.is_integration == (kind == "integration")]
    except subprocess.CalledProcessError:
        return 101
    failed = []
    for program in chosen:
        name = program.source.relative_to(ROOT)
        print(f"\n     Running {name}", flush=True)
        done = subprocess.run([program.path], cwd=program.folder, env=program.environment(), check=False)
        if done.returncode:
            failed.append(f"{name} ended with {done.returncode}")
    if failed:
        print(*failed, sep="\n", file=sys.stderr)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
