"""Summaries that a script of k6 writes itself, in `handleSummary`."""

import sys
import warnings
from collections.abc import Iterable

__all__: list[str] = []

# The one who calls `weir.load`.
_CALLER = 3


def write_summaries(summaries: Iterable[tuple[str, str]], failure: str | None) -> None:
    """Print and write what a script returns: texts by the names of files, ``stdout`` or ``stderr``.

    The load is over and its result is there, so a failure is a warning.
    """
    if failure is not None:
        warnings.warn(failure, RuntimeWarning, stacklevel=_CALLER)
    for name, text in summaries:
        if name in ("stdout", "stderr"):
            # Of Python and not of the process: a notebook shows these.
            print(text, end="", file=getattr(sys, name))
            continue
        try:
            with open(name, "w", encoding="utf-8", newline="") as file:
                file.write(text)
        except OSError as error:
            warnings.warn(f"cannot write {name!r}: {error.strerror}", RuntimeWarning, stacklevel=_CALLER)
