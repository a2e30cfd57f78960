"""Measure what building and testing cost, and write the table of docs/design/building.md.

    python scripts/build_times.py [--rounds 3] [--only NAME] [--page]

Each step runs in a clone of its own below target/build-times, so that it is as cold as its name says; the registry's
packages are fetched before. The figure is the median of the rounds. `--page` writes the table from the last
measurements alone.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PLACE = ROOT / "target" / "build-times"
KEPT = ROOT / "docs" / "design" / "building.json"
PAGE = ROOT / "docs" / "design" / "building.md"
BEGIN, END = "<!-- written by scripts/build_times.py -->\n", "<!-- end -->\n"
SECOND = "s"


@dataclass(frozen=True)
class Step:
    """What is measured, and the goal."""

    name: str
    unit: str
    goal: float | None
    measure: Callable[[Path], float]


def main() -> int:
    """Measure the steps, keep the figures and write the table."""
    args = _arguments()
    kept: dict[str, list[float]] = json.loads(KEPT.read_text("utf-8")) if KEPT.exists() else {}
    if not args.page:
        for step in STEPS:
            if args.only and args.only not in step.name:
                continue
            kept[step.name] = [_measured(step) for _ in range(args.rounds)]
            KEPT.write_text(json.dumps(kept, indent=1) + "\n", "utf-8")
    head, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
    PAGE.write_text(head + BEGIN + _table(kept) + END + rest.partition(END)[2], "utf-8")
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure builds.")
    parser.add_argument("--rounds", type=int, default=3, help="measurements of each step [%(default)s]")
    parser.add_argument("--only", metavar="NAME", help="steps whose name contains this")
    parser.add_argument("--page", action="store_true", help="the table from the last measurements")
    return parser.parse_args()


def _measured(step: Step) -> float:
    value = step.measure(_clone())
    print(f"{step.name}: {value:.2f} {step.unit}", file=sys.stderr)
    return value


def _table(kept: dict[str, list[float]]) -> str:
    lines = ["| step | median | goal | |", "|---|---|---|---|"]
    for step in STEPS:
        if values := kept.get(step.name):
            value = statistics.median(values)
            goal = "" if step.goal is None else f"{step.goal:g} {step.unit}"
            verdict = "" if step.goal is None else "reached" if value <= step.goal else "missed"
            lines.append(f"| {step.name} | {_shown(value)} {step.unit} | {goal} | {verdict} |")
    return "\n".join(lines) + "\n"


def _shown(value: float) -> str:
    return f"{value:.0f}" if value >= 10 else f"{value:.1f}"


# --- The place, and how a command is timed


def _clone() -> Path:
    """A clone of what is committed, with nothing built."""
    shutil.rmtree(PLACE, ignore_errors=True)
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(PLACE)], check=True)
    _run("cargo fetch --locked --quiet", PLACE)
    return PLACE


def _run(command: str, folder: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name not in {"CARGO_TARGET_DIR", "VIRTUAL_ENV"}}
    done = subprocess.run(
        ["bash", "-c", command], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"build_times.py: {command}\n{done.stdout[-3000:]}{done.stderr[-3000:]}")


def _timed(command: str, folder: Path) -> float:
    began = time.perf_counter()
    _run(command, folder)
    return time.perf_counter() - began


def cold(command: str) -> Callable[[Path], float]:
    """Time of a command in a fresh clone."""
    return lambda folder: _timed(command, folder)


def changed(file: str, prepare: str, command: str) -> Callable[[Path], float]:
    """Time of a command after a change of one file, where everything was built before."""

    def measure(folder: Path) -> float:
        _run(prepare, folder)
        with (folder / file).open("a", encoding="utf-8") as source:
            source.write(
                "\n/// A constant that was not there.\n"
                '#[allow(dead_code, reason = "a change")]\nconst CHANGED: u8 = 1;\n'
            )
        return _timed(command, folder)

    return measure


def start_of(command: str, prepare: str) -> Callable[[Path], float]:
    """Milliseconds of a short command, the median of 21."""

    def measure(folder: Path) -> float:
        _run(prepare, folder)
        line = command.split()
        times = []
        for _ in range(21):
            began = time.perf_counter()
            subprocess.run(line, cwd=folder, stdout=subprocess.DEVNULL, check=True)
            times.append(1000 * (time.perf_counter() - began))
        return statistics.median(times)

    return measure


def import_time(script: str) -> Callable[[Path], float]:
    """Milliseconds of a script's imports, the median of 21, by Python's own count."""

    def measure(folder: Path) -> float:
        _run(INSTALL, folder)
        times = []
        for _ in range(21):
            command = [".venv/bin/python", "-X", "importtime", "-c", script]
            done = subprocess.run(command, cwd=folder, stderr=subprocess.PIPE, text=True, check=True)
            rows = [line.split("|") for line in done.stderr.splitlines() if "weir" in line or "_weir" in line]
            # A module that another one of the package imports stands indented below it, and is counted there.
            outer = [row for row in rows if not row[2].startswith("   ")]
            times.append(sum(float(row[1]) for row in outer) / 1000)
        return statistics.median(times)

    return measure


def size_of(file: str, prepare: str) -> Callable[[Path], float]:
    """Megabytes of a file."""

    def measure(folder: Path) -> float:
        _run(prepare, folder)
        return (folder / file).stat().st_size / 1e6

    return measure


INSTALL = "scripts/setup.sh studies"
GATE_FILE, DECISION_FILE = "crates/gate/gate/src/routes.rs", "crates/gate/resilience/src/policy.rs"

STEPS = [
    Step("`make demo` in a fresh clone, to its end", SECOND, 180, cold("make demo")),
    Step("`make test` in a fresh clone", SECOND, 600, cold("make test")),
    Step("`pip install .` in a fresh clone", SECOND, 240, cold("python3 -m venv .venv && .venv/bin/pip install -q .")),
    Step("`cargo build -p weir-cli --release`", SECOND, None, cold("cargo build --locked -p weir-cli --release")),
    Step(
        "change of a file of gate, then `cargo test -p weir-gate --lib`",
        SECOND,
        15,
        changed(GATE_FILE, "cargo test --locked -p weir-gate --lib", "cargo test --locked -p weir-gate --lib"),
    ),
    Step(
        "change of a file of gate, then `cargo test -p weir-cli --test it gate_`",
        SECOND,
        60,
        changed(
            GATE_FILE,
            "cargo test --locked -p weir-cli --test it --no-run",
            "cargo test --locked -p weir-cli --test it gate_",
        ),
    ),
    Step(
        "change of a decision, then `cargo check`",
        SECOND,
        5,
        changed(DECISION_FILE, "cargo check --locked", "cargo check --locked"),
    ),
    Step("`weir --version` from pip", "ms", 10, start_of(".venv/bin/weir --version", INSTALL)),
    Step("`import weir; weir.load`", "ms", 40, import_time("import weir; weir.load")),
    Step("stripped binary", "MB", 12, size_of("target/release/weir", "cargo build --locked -p weir-cli --release")),
]


if __name__ == "__main__":
    sys.exit(main())
