"""Exceptions in tasks: how often each came, with the traceback of the first."""

from __future__ import annotations

import json
import os
import sys
import traceback
from dataclasses import asdict, dataclass
from types import TracebackType

from weir._errors import NoResponse

__all__: list[str] = []

_MAX_KINDS = 100
_MAX_SHOWN = 5
_LIBRARY = os.path.dirname(os.__file__) + os.sep
_INSTALLED = f"{os.sep}site-packages{os.sep}"
_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep


@dataclass
class _Kind:
    count: int
    where: str
    what: str
    text: str


class TaskErrors:
    """Exceptions in tasks, by their kind and place."""

    def __init__(self) -> None:
        """Begin without any."""
        self._kinds: dict[tuple[str, str, str], _Kind] = {}
        self.count = 0

    def add(self, owner: str, error: BaseException) -> None:
        """Count an exception; `owner` is the class and task."""
        if isinstance(error, NoResponse):
            # Its request is counted.
            return
        self.count += 1
        tb = _own_part(error.__traceback__)
        frames = traceback.extract_tb(tb)
        where = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else ""
        key = (owner, type(error).__name__, where)
        known = self._kinds.get(key)
        if known is not None:
            known.count += 1
        elif len(self._kinds) < _MAX_KINDS:
            what = "".join(traceback.format_exception_only(type(error), error)).strip()
            text = "".join(traceback.format_exception(type(error), error, tb))
            self._kinds[key] = _Kind(1, owner, what, text)

    def to_json(self) -> str:
        """Return the exceptions as text, for another process."""
        return json.dumps([(*key, asdict(kind)) for key, kind in self._kinds.items()])

    def add_json(self, text: str) -> None:
        """Add the exceptions of another process."""
        for owner, name, where, fields in json.loads(text):
            kind = _Kind(**fields)
            self.count += kind.count
            known = self._kinds.get((owner, name, where))
            if known is not None:
                known.count += kind.count
            elif len(self._kinds) < _MAX_KINDS:
                self._kinds[owner, name, where] = kind

    def report(self) -> None:
        """Print the exceptions, the most frequent first."""
        write = sys.stderr.write
        kinds = sorted(self._kinds.values(), key=lambda kind: -kind.count)
        for kind in kinds[:_MAX_SHOWN]:
            times = "once" if kind.count == 1 else f"{kind.count:,} times"
            write(f"weir: {kind.where} raised an exception {times}; the first:\n{kind.text}")
        if len(kinds) > _MAX_SHOWN:
            write(f"weir: {len(kinds) - _MAX_SHOWN} other kinds of exceptions in tasks\n")


def described(error: BaseException) -> str:
    """Return an exception in one line, with the last line of the script that was in it."""
    text = str(error)
    named = type(error).__qualname__ + (f": {text}" if text else "")
    frames = [one for one in traceback.extract_tb(error.__traceback__) if _is_of_script(one.filename)]
    return f"{named}, at {os.path.relpath(frames[-1].filename)}:{frames[-1].lineno}" if frames else named


def _is_of_script(path: str) -> bool:
    return not path.startswith(("<", _LIBRARY, _PACKAGE)) and _INSTALLED not in path


def place_of(thread: int) -> str:
    """Return where a thread is in its script: file, line, and class or function."""
    frame = sys._current_frames().get(thread)
    inner = frame
    while frame is not None:
        path = frame.f_code.co_filename
        if _is_of_script(path):
            owner = frame.f_locals.get("self")
            name = frame.f_code.co_name if owner is None else f"{type(owner).__name__}.{frame.f_code.co_name}"
            return f"{os.path.relpath(path)}:{frame.f_lineno}: {name}()"
        frame = frame.f_back
    return "the script" if inner is None else f"{inner.f_code.co_filename}:{inner.f_lineno}: {inner.f_code.co_name}()"


def _own_part(tb: TracebackType | None) -> TracebackType | None:
    """Part of a traceback from the first frame outside this package on."""
    first = tb
    while first is not None and first.tb_frame.f_code.co_filename.startswith(_PACKAGE):
        first = first.tb_next
    return first or tb
