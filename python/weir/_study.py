"""Results of `weir study`: the measurements of a folder as a table."""

from __future__ import annotations

import csv
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any

from weir._errors import UsageError

__all__ = ["Study"]

_FILE = "measurements.csv"
_TEXTS = frozenset({"variant", "load", "run", "failure"})


class Study:
    """Results of a study.

    Attributes:
        folder: Results folder of `weir study`.
        rows: Measurements, a dictionary for each and for each of its loads: the variant, the parameters of the sweep,
            `round`, `load`, and what was measured, by the names in docs/study.md. What was not measured is None, as are
            all figures of a measurement that failed.
    """

    __slots__ = ("folder", "rows")

    folder: Path
    rows: tuple[dict[str, Any], ...]

    def __init__(self, folder: Path, rows: tuple[dict[str, Any], ...]) -> None:
        """Hold rows that `read` has read."""
        self.folder = folder
        self.rows = rows

    @classmethod
    def read(cls, folder: str | PathLike[str]) -> Study:
        """Read the results folder of a study.

        Args:
            folder: Folder that `weir study` has written, such as `results`.

        Returns:
            The results.

        Raises:
            UsageError: The folder has no `measurements.csv`.
        """
        path = Path(folder)
        try:
            with (path / _FILE).open(newline="", encoding="utf-8") as file:
                rows = tuple({name: _value(name, text) for name, text in row.items()} for row in csv.DictReader(file))
        except OSError as error:
            raise UsageError(
                f"cannot read {path / _FILE}: {error.strerror}; name the results folder of 'weir study'"
            ) from error
        return cls(path, rows)

    def to_pandas(self) -> Any:
        """Convert the measurements to a data frame of pandas.

        Returns:
            A frame with a row per measurement and load; what was not measured is NaN.

        Raises:
            ImportError: pandas is not installed.
        """
        try:
            # weir does not depend on it, nor do its types.
            pandas = import_module("pandas")
        except ImportError as error:
            raise ImportError("to_pandas needs pandas; install it with: pip install pandas") from error
        frame = pandas.DataFrame(list(self.rows))
        numbers = [name for name in frame.columns if all(_is_number(row[name]) for row in self.rows)]
        return frame.astype(dict.fromkeys(numbers, float)) if numbers else frame

    def __repr__(self) -> str:
        """Return the folder and the number of rows."""
        return f"Study(folder={str(self.folder)!r}, {len(self.rows)} rows)"


def _value(name: str, text: str) -> Any:
    if not text:
        return None
    if text in {"True", "False"}:
        return text == "True"
    if name in _TEXTS:
        return text
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))
