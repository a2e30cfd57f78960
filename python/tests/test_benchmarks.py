"""The published benchmarks: README.md and the list of pages are what the pages give."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_figures_in_the_readme_and_the_list_are_those_of_the_published_pages() -> None:
    """Written by hand, they had become older and better than the pages that they were taken from."""
    command = [sys.executable, "benches/harness/published.py", "--check"]
    checked = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stderr) == (0, "")
