"""How-to guides: the commands of each page run in order, in one shell, as a reader types them."""

from __future__ import annotations

from pathlib import Path

import pytest
from naming import ROOT
from page_script import script
from programs import started

pytestmark = pytest.mark.wide

FOLDER = ROOT / "docs" / "how-to"
PAGES = sorted(path.stem for path in FOLDER.glob("*.md"))
PORTS = ("8001", "8002", "8080", "9001", "9999")
TIMEOUT_S = 120

SHORTER = [(r"-d \d+s", "-d 1s"), (r"--step-time \d+s", "--step-time 3s"), (r"in 1 2 3 4 5 6;", "in 1 2 3;")]
"""Durations in place of those of the pages, so that a page takes seconds."""

WITH_PYTHON = {"tenacity"}
"""Pages whose blocks of Python are run, too."""

EXIT_CODES = {
    ("login", "--data wrong.csv"): {3},
    ("queue", "weir send orders.jsonl"): {0, 1},
    # Objectives, and differences between short runs, depend on how busy the machine is.
    ("read-a-report", "weir load"): {0, 1},
    ("gateway", "weir load"): {0, 1},
    ("capacity", "weir load"): {0, 1},
    ("capacity", "weir capacity"): {0, 1},
    ("two-commits", "weir compare"): {0, 1},
    ("two-commits", "git worktree"): None,
}
"""Exit codes of commands that may end with another one than 0, by page and text; None: not run here."""


def test_there_are_guides() -> None:
    assert len(PAGES) >= 6


@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_the_guide_run(page: str, tmp_path: Path) -> None:
    def allowed(command: str) -> set[int] | None:
        return next((codes for (name, text), codes in EXIT_CODES.items() if name == page and text in command), {0})

    text = script(
        f"docs/how-to/{page}.md",
        tmp_path,
        ports=PORTS,
        shorter=SHORTER,
        exit_codes=allowed,
        runs_python=page in WITH_PYTHON,
    )
    file = tmp_path / "guide.sh"
    file.write_text(text)
    with started("bash", str(file), cwd=tmp_path) as process:
        out, err = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 0, f"{out}\n{err}"
