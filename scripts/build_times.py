"""Measure what building and testing cost, and write the table of docs/design/building.md.

    python scripts/build_times.py [--rounds 1] [--only NAME] [--page]

A step that is cold runs in a clone of its own below target/build-times; those after it use what it has built, or build
it. The registry's packages are fetched before. The figure is the median of the rounds. `--page` writes the table from
the last measurements alone.
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
    measure: Callable[[], float]


def main() -> int:
    """Measure the steps, keep the figures and write the table."""
    args = _arguments()
    kept: dict[str, list[float]] = json.loads(KEPT.read_text("utf-8")) if KEPT.exists() else {}
    if not args.page:
        for step in STEPS:
            if args.only and args.only not in step.name:
                continue
            kept[step.name] = [_measured(step) for _ in range(args.rounds)]
            shown = {step.name: kept[step.name] for step in STEPS if step.name in kept}
            KEPT.write_text(json.dumps(shown, indent=1) + "\n", "utf-8")
    head, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
    PAGE.write_text(head + BEGIN + _table(kept) + END + rest.partition(END)[2], "utf-8")
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure builds.")
    parser.add_argument("--rounds", type=int, default=1, help="measurements of each step [%(default)s]")
    parser.add_argument("--only", metavar="NAME", help="steps whose name contains this")
    parser.add_argument("--page", action="store_true", help="the table from the last measurements")
    return parser.parse_args()


def _measured(step: Step) -> float:
    value = step.measure()
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


def _clone() -> None:
    """Makes a clone of what is committed, with nothing built."""
    shutil.rmtree(PLACE, ignore_errors=True)
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(PLACE)], check=True)
    _run("cargo fetch --locked --quiet")


def _prepare(command: str) -> None:
    """Makes a clone if there is none of this commit, undoes what a step has changed in it, and builds."""
    if not PLACE.exists() or _commit(PLACE) != _commit(ROOT):
        _clone()
    _run(f"git checkout --quiet . && {command}")


def _commit(folder: Path) -> str:
    command = ["git", "rev-parse", "HEAD"]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout


def _run(command: str) -> None:
    environment = {name: value for name, value in os.environ.items() if name not in {"CARGO_TARGET_DIR", "VIRTUAL_ENV"}}
    done = subprocess.run(
        ["bash", "-c", command], cwd=PLACE, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"build_times.py: {command}\n{done.stdout[-3000:]}{done.stderr[-3000:]}")


def _timed(command: str) -> float:
    began = time.perf_counter()
    _run(command)
    return time.perf_counter() - began


def cold(command: str) -> Callable[[], float]:
    """Time of a command in a fresh clone."""

    def measure() -> float:
        _clone()
        return _timed(command)

    return measure


def changed(file: str, build: str, command: str) -> Callable[[], float]:
    """Time of a command after a change of one file, where everything was built before."""

    def measure() -> float:
        _prepare(build)
        with (PLACE / file).open("a", encoding="utf-8") as source:
            source.write(
                "\n/// A constant that was not there.\n"
                '#[allow(dead_code, reason = "a change")]\nconst CHANGED: u8 = 1;\n'
            )
        return _timed(command)

    return measure


def start_of(command: str) -> Callable[[], float]:
    """Milliseconds of a short command of the package, the median of 21."""

    def measure() -> float:
        _prepare(f"[ -x .venv/bin/weir ] || {{ {INSTALL}; }}")
        line = command.split()
        times = []
        for _ in range(21):
            began = time.perf_counter()
            subprocess.run(line, cwd=PLACE, stdout=subprocess.DEVNULL, check=True)
            times.append(1000 * (time.perf_counter() - began))
        return statistics.median(times)

    return measure


def import_time(script: str) -> Callable[[], float]:
    """Milliseconds of a script's imports, the median of 21, by Python's own count."""

    def measure() -> float:
        _prepare(f"[ -x .venv/bin/weir ] || {{ {INSTALL}; }}")
        times = []
        for _ in range(21):
            # Not in the clone's own folder, whose sources would be imported.
            command = [str(PLACE / ".venv/bin/python"), "-X", "importtime", "-c", script]
            done = subprocess.run(command, cwd=PLACE / "target", stderr=subprocess.PIPE, text=True, check=True)
            rows = [line.split("|") for line in done.stderr.splitlines() if "weir" in line or "_weir" in line]
            # A module that another one of the package imports stands indented below it, and is counted there.
            outer = [row for row in rows if not row[2].startswith("   ")]
            times.append(sum(float(row[1]) for row in outer) / 1000)
        return statistics.median(times)

    return measure


def size_of(file: str, build: str) -> Callable[[], float]:
    """Megabytes of a file."""

    def measure() -> float:
        _prepare(build)
        return (PLACE / file).stat().st_size / 1e6

    return measure


INSTALL = "python3 -m venv .venv && .venv/bin/pip install -q ."
GATE_FILE, DECISION_FILE = "crates/gate/gate/src/routes.rs", "crates/gate/resilience/src/policy.rs"
DELIVERY_FILE = "crates/send/delivery/src/lib.rs"
GATE_TESTS, DELIVERY_TESTS = (f"cargo test --locked -p weir-{name} --lib" for name in ("gate", "delivery"))
SUITE = "CARGO_INCREMENTAL=0 scripts/setup.sh test"
RELEASE = "cargo build --locked -p weir-cli --release"

STEPS = [
    Step("`make demo` in a fresh clone, to its end", SECOND, 150, cold("make demo")),
    Step("what `make test` installs and builds in a fresh clone", SECOND, None, cold(SUITE)),
    Step(
        "change of a file of gate, then `cargo test -p weir-gate --lib`",
        SECOND,
        15,
        changed(GATE_FILE, GATE_TESTS, GATE_TESTS),
    ),
    Step(
        "change of the sender's decisions, then `cargo test -p weir-delivery --lib`",
        SECOND,
        15,
        changed(DELIVERY_FILE, DELIVERY_TESTS, DELIVERY_TESTS),
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
    Step("`pip install .` in a fresh clone", SECOND, 240, cold(INSTALL)),
    Step("`weir --version` from pip", "ms", 10, start_of(".venv/bin/weir --version")),
    Step("`import weir; weir.load`", "ms", 40, import_time("import weir; weir.load")),
    Step("`cargo build -p weir-cli --release`", SECOND, None, cold(RELEASE)),
    Step("stripped binary", "MB", 12, size_of("target/release/weir", RELEASE)),
]


if __name__ == "__main__":
    sys.exit(main())
