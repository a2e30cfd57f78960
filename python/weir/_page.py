"""HTML reports as files."""

from os import PathLike
from pathlib import Path

__all__ = ["write_page"]


def write_page(page: str, path: str | PathLike[str] | None) -> str:
    """Write an HTML report to a file, if `path` is given.

    Returns:
        The report itself.
    """
    if path is not None:
        Path(path).write_text(page, encoding="utf-8")
    return page
