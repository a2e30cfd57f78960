"""The published benchmarks: README.md and the summary have the figures of the pages."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.wide

ROOT = Path(__file__).parents[2]


def test_figures_in_the_readme_and_the_summary_are_those_of_the_pages() -> None:
    command = [sys.executable, "benches/harness/published.py", "--check"]
    checked = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stderr) == (0, "")
