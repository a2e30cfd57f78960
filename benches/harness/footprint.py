"""What a running server has spent and what it holds, from /proc: CPU time, open files, memory."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

#: CPU time in ns by process and thread.
Spent = dict[tuple[int, int], int]


def spent(pid: int) -> Spent:
    """What the scheduler has counted for every thread of the process and of those it started."""
    counted: Spent = {}
    for process in family(pid):
        for folder in Path(f"/proc/{process}/task").iterdir():
            try:
                counted[process, int(folder.name)] = int((folder / "schedstat").read_text().split()[0])
            except OSError:  # the thread has ended
                continue
    return counted


def cpu_s(before: Spent, after: Spent) -> float:
    """CPU time between two countings. What a thread spent that has ended since is lost, so there may be none."""
    if not before.keys() <= after.keys():
        raise RuntimeError("threads of the server ended while it was measured, and their CPU time is not known")
    return sum(ns - before.get(thread, 0) for thread, ns in after.items()) / 1e9


def family(pid: int) -> list[int]:
    """The process and all that descend from it."""
    parents = dict(_parents())
    found = [pid]
    for parent in found:  # grows while it is read
        found.extend(child for child, its_parent in parents.items() if its_parent == parent)
    return found


def _parents() -> Iterator[tuple[int, int]]:
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                # The name is in brackets and may hold blanks and brackets.
                yield int(entry), int(Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue


def open_files(pid: int) -> int:
    """How many files, sockets, pipes and the like the process has open."""
    return len(os.listdir(f"/proc/{pid}/fd"))


def resident_mb(pid: int) -> float:
    """Resident memory, counted page by page: the quick counters of /proc/PID/status may lag."""
    found = re.search(r"^Rss:\s+(\d+) kB", Path(f"/proc/{pid}/smaps_rollup").read_text(), re.MULTILINE)
    return int(found.group(1)) / 1024 if found else float("nan")
