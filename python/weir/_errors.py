"""What weir raises.

::

    Exception
    └── WeirError                  anything below
        ├── UsageError             a value that makes no sense; also a ValueError
        └── SetupError             the run could not start: nobody there, no TLS, too few open files
    KeyboardInterrupt
    └── Interrupted                Ctrl-C during a run; has what was measured

A failed *request* is never an exception: it is counted, by kind, in `Run.failures` and `Run.status`. An argument of
the wrong type is a plain `TypeError`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from weir._run import Run

__all__ = ["Interrupted", "SetupError", "UsageError", "WeirError"]


class WeirError(Exception):
    """The base of weir's errors."""

    __module__ = "weir"


class UsageError(WeirError, ValueError):
    """What was asked for makes no sense; the message names the argument, its value and a remedy."""

    __module__ = "weir"


class SetupError(WeirError):
    """The run could not start, and no request was sent; the message says why, and often what to do."""

    __module__ = "weir"


class Interrupted(KeyboardInterrupt):
    """Ctrl-C ended a run early. Being a `KeyboardInterrupt`, it ends a program that does not ask for it.

    >>> try:
    ...     run = weir.load(url, duration="10m")
    ... except weir.Interrupted as interrupt:
    ...     run = interrupt.run
    """

    __module__ = "weir"

    run: Run
    """What was measured until then; its `interrupted` is true."""

    def __init__(self, run: Run) -> None:
        """Wrap what was measured."""
        super().__init__(f"after {run.duration_s:.1f} s; what was measured is in .run")
        self.run = run

    def __reduce__(self) -> tuple[type[Interrupted], tuple[Run]]:
        """Pickle by the run, not by the message."""
        return Interrupted, (self.run,)
