"""Saved runs of load tests.

A *recording* is a folder with the runs of one call of `weir_load`, a file each, as `weir load --out` writes them. An
empty file beside it marks one whose test passed::

    .weir/runs/TEST/LOAD/20260102T030405.678901-4711/1.json
    .weir/runs/TEST/LOAD/20260102T030405.678901-4711.passed

A recording is written under another name and renamed, so a reader sees all of it or nothing. Only a process that has
the turn (`turn.py`) saves and removes; each process adds the marks of its own recordings.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from hashlib import sha256
from pathlib import Path

from weir._run import Run

__all__ = ["Recording", "SavedRuns", "shown"]

_LOCK = ".lock"
_TEMPORARY = ".new-"
_UNSAFE = re.compile(r"[^A-Za-z0-9._=-]+")
_LONGEST_NAME = 100
"""Bytes of a readable name, without its digest; file systems allow 255 for both."""


@dataclass(frozen=True)
class Recording:
    """Runs of one call that were saved.

    Attributes:
        folder: Folder of the runs.
        runs: Runs, in order.
    """

    folder: Path
    runs: tuple[Run, ...]


class SavedRuns:
    """Folder of saved runs, by test and load.

    Attributes:
        root: The folder.
        keep: Number of recordings per load.
    """

    root: Path
    keep: int

    def __init__(self, root: Path, keep: int) -> None:
        """Name the folder; nothing is read or written."""
        self.root = root
        self.keep = keep

    def prepare(self) -> Path:
        """Make the folder.

        Returns:
            The lock file for `turn`.

        Raises:
            OSError: The folder cannot be made.
        """
        if not self.root.is_dir():
            self.root.mkdir(parents=True, exist_ok=True)
            # Figures of one machine mean nothing on another one.
            (self.root / ".gitignore").write_text("*\n", "utf-8")
        return self.root / _LOCK

    def last_good(self, test: str, load: str) -> tuple[Recording | None, list[str]]:
        """Read the last recording whose test passed.

        Args:
            test: Node ID of the test.
            load: Name of the load in it.

        Returns:
            The recording, if there is one; and a sentence for each newer one that is damaged.
        """
        damaged: list[str] = []
        for folder in reversed(self._recordings(test, load)):
            if _mark(folder).exists():
                try:
                    return Recording(folder, _read(folder)), damaged
                except (OSError, ValueError) as error:
                    damaged.append(f"damaged saved run ignored: {error}; remove {shown(folder)}")
        return None, damaged

    def save(self, test: str, load: str, runs: Sequence[Run]) -> Path:
        """Save the runs of a call, and remove the oldest recordings of this load.

        Returns:
            The folder of the recording.

        Raises:
            OSError: The files cannot be written.
        """
        parent = self._folder(test, load)
        parent.mkdir(parents=True, exist_ok=True)
        self._prune(test, load)
        name = f"{datetime.now(timezone.utc):%Y%m%dT%H%M%S.%f}-{os.getpid()}"
        temporary = parent / f"{_TEMPORARY}{name}"
        temporary.mkdir()
        for number, run in enumerate(runs, 1):
            (temporary / f"{number}.json").write_text(run.to_json(), "utf-8")
        return temporary.rename(parent / name)

    @staticmethod
    def mark_good(folder: Path) -> None:
        """Mark a recording as one whose test passed."""
        # Other sessions, or users, may have removed it meanwhile.
        if folder.is_dir():
            _mark(folder).touch()

    def _folder(self, test: str, load: str) -> Path:
        # The digest keeps `a/b` and `a_b` apart, and what differs beyond the longest name.
        return self.root / f"{_readable(test)}-{_digest(test)}" / _load_name(load)

    def _recordings(self, test: str, load: str) -> list[Path]:
        """List recordings by age, the oldest first."""
        return sorted(path for path in self._folder(test, load).glob("[0-9]*") if path.is_dir())

    def _prune(self, test: str, load: str) -> None:
        """Remove the oldest recordings, so that one more is within the limit; the last good one stays."""
        recordings = self._recordings(test, load)
        good = [folder for folder in recordings if _mark(folder).exists()]
        for folder in recordings[: max(0, len(recordings) - self.keep + 1)]:
            if folder not in good[-1:]:
                shutil.rmtree(folder, ignore_errors=True)
                _mark(folder).unlink(missing_ok=True)
        # Left by processes that were killed while they wrote; none writes now but this one.
        for folder in self._folder(test, load).glob(f"{_TEMPORARY}*"):
            shutil.rmtree(folder, ignore_errors=True)


def shown(path: Path) -> str:
    """Return a path for messages: below the working directory without it."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def _mark(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.passed")


def _read(folder: Path) -> tuple[Run, ...]:
    files = sorted(folder.glob("*.json"), key=lambda file: (len(file.name), file.name))
    if not files:
        raise ValueError("no run in it")
    return tuple(map(_read_run, files))


def _read_run(file: Path) -> Run:
    try:
        return Run.from_json(file.read_text("utf-8"))
    except ValueError as error:
        reason = " ".join(str(error).split())
        raise ValueError(f"{file.name}: {reason}") from error


def _load_name(load: str) -> str:
    readable = _readable(load)
    return load if load == readable and not load.startswith(".") else f"{readable}-{_digest(load)}"


def _readable(name: str) -> str:
    return _UNSAFE.sub("_", name)[:_LONGEST_NAME]


def _digest(name: str) -> str:
    return sha256(name.encode("utf-8", "backslashreplace")).hexdigest()[:12]
