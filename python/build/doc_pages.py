"""Pages of the documentation in a package: the address at the end of each `--help` leads to them."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
#: Folders of docs/ that are not pages.
_LEFT_OUT = {"site", "schema"}
_ENDINGS = {".md", ".png", ".svg"}


def copy_pages(folder: Path) -> None:
    """Copy the pages and their pictures into the folder, which is made anew; an sdist has none."""
    shutil.rmtree(folder, ignore_errors=True)
    docs = ROOT / "docs"
    for page in sorted(docs.rglob("*")):
        place = page.relative_to(docs)
        if page.suffix in _ENDINGS and place.parts[0] not in _LEFT_OUT:
            (folder / place).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(page, folder / place)


if __name__ == "__main__":
    copy_pages(Path(sys.argv[1]))
