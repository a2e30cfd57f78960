"""Run the tests in Python, several at a time.

    python scripts/python_tests.py [ARGUMENT]...

Arguments are those of pytest. What fails is run again alone (reruns.py). The exit code is pytest's.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from xml.etree import ElementTree

import reruns

ROOT = Path(__file__).parents[1]
FAILED = ROOT / ".pytest_cache/v/cache/lastfailed"
# They wait, too; each file stays in one worker, which has its services and its browser. The order is that of
# conftest.py: what takes longest begins. A test that hangs ends its worker (pyproject.toml), and the run.
TOGETHER = [
    *("-n", str(3 * (os.cpu_count() or 1)), "--dist", "loadfile", "--no-loadscope-reorder"),
    *("--max-worker-restart", "0", "--durations=40", "--durations-min=5"),
]


def pytest(*arguments: str) -> int:
    """Run pytest; return its exit code."""
    return subprocess.run([sys.executable, "-m", "pytest", "-q", *arguments], cwd=ROOT, check=False).returncode


def last_failed() -> list[str]:
    """Return the tests that failed when they last ran."""
    return list(json.loads(FAILED.read_text()))


def failed_again(tests: list[str]) -> list[str]:
    """Run tests alone, and return those that failed."""
    code = pytest(*tests)
    return [] if code == 0 else tests if code != 1 else [test for test in tests if test in last_failed()]


def have_all_run(results: Path) -> bool:
    """Return whether no worker ended before its tests."""
    return not any("crashed while running" in text for text in ElementTree.parse(results).getroot().itertext())


def main() -> int:
    """Run the tests; run what failed again."""
    FAILED.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder, "results.xml")
        code = pytest(*TOGETHER, f"--junitxml={results}", *sys.argv[1:])
        if code != 1 or not have_all_run(results):
            return code
    return int(bool(reruns.failed_alone(last_failed(), failed_again)))


if __name__ == "__main__":
    sys.exit(main())
