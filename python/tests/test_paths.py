"""Paths in texts for developers: the files and folders that they name exist."""

import re
from pathlib import Path

import pytest
from naming import ROOT

PAGES = [ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs" / "design").rglob("*.md"))]

_FOLDERS = "src|crates|tests|python|docs|benches|fuzz|studies|examples|scripts"
_PATH = re.compile(rf"`((?:{_FOLDERS})/[\w./*-]*)`")
_PLACEHOLDER = re.compile(r"NAME|TARGET")


def test_pages_have_paths() -> None:
    found = [path for page in PAGES for path in _PATH.findall(page.read_text("utf-8"))]
    assert len(found) >= 100


@pytest.mark.parametrize("page", PAGES, ids=[page.name for page in PAGES])
def test_paths_exist(page: Path) -> None:
    found = _PATH.findall(page.read_text("utf-8"))
    paths = [path for path in found if not _PLACEHOLDER.search(path)]
    missing = [path for path in paths if not any(ROOT.glob(path.rstrip("/")))]
    assert missing == []
