"""Keep the failed tests of the last runs of the suite, and list them.

    python scripts/flaky.py SUITE < NAMES        after a run; names of failed tests, one a line

The last ten runs of each suite are in target/suite/flaky.json. A test in it that passes now has failed without a change
of it, or was repaired: its name at the end of a green run is to be read as a failure until ten runs have not had it.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import defaultdict
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
KEPT = ROOT / "target" / "suite" / "flaky.json"
RUNS = 10
"""Runs of a suite that are kept."""


def read() -> list[dict[str, Any]]:
    """Return the runs that are kept, oldest first; none if the file is of another kind."""
    try:
        runs = json.loads(KEPT.read_text("utf-8"))["runs"]
    except (OSError, ValueError, KeyError, TypeError):
        return []
    return [run for run in runs if isinstance(run, dict) and {"suite", "at", "commit", "failed"} <= run.keys()]


def commit() -> str:
    """Return the commit that was tested, shortened; empty outside of a repository."""
    command = ["git", "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True).stdout.strip()


def kept(runs: list[dict[str, Any]], suite: str) -> list[dict[str, Any]]:
    """Return the runs without those of this suite that are too old."""
    own = [place for place, run in enumerate(runs) if run["suite"] == suite]
    old = set(own[:-RUNS])
    return [run for place, run in enumerate(runs) if place not in old]


def lines(runs: list[dict[str, Any]], suite: str) -> list[str]:
    """Return a line for each test that failed in a kept run of this suite, most often first."""
    own = [run for run in runs if run["suite"] == suite]
    failures: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for run in own:
        for name in run["failed"]:
            failures[name].append(run)
    order = sorted(failures.items(), key=lambda item: (-len(item[1]), item[0]))
    return [
        f"failed in {len(of_test)} of the last {len(own)} runs, last on {of_test[-1]['at']} at "
        f"{of_test[-1]['commit'] or 'no commit'}: {name}"
        for name, of_test in order
    ]


def test_of(line: str) -> str:
    """Return the test that a line of a failure names, without the reason that pytest adds."""
    found = re.fullmatch(r"(\S+::\w+(?:\[.*?\])?)(?: - .*)?", line)
    return found[1] if found else line


def main() -> int:
    """Keep a run, and list the tests that failed in any of the last ones."""
    suite = sys.argv[1]
    failed = sorted({test_of(line.strip()) for line in sys.stdin if line.strip()})
    now = datetime.now(timezone.utc).isoformat(timespec="seconds")
    runs = kept([*read(), {"suite": suite, "at": now, "commit": commit(), "failed": failed}], suite)
    KEPT.parent.mkdir(parents=True, exist_ok=True)
    KEPT.write_text(json.dumps({"runs": runs}, indent=1) + "\n", "utf-8")
    print(*lines(runs, suite), sep="\n", end="\n" if lines(runs, suite) else "")
    return 0


if __name__ == "__main__":
    sys.exit(main())
