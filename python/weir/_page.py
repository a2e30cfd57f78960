"""Pages to look at."""

from os import PathLike
from pathlib import Path

__all__ = ["write_page"]


def write_page(page: str, path: str | PathLike[str] | None) -> str:
    """Return the page, and write it to a file if one is named."""
    if path is not None:
        Path(path).write_text(page, encoding="utf-8")
    return page
