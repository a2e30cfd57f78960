"""Resources of a running server, from /proc: CPU time, open files, memory."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

#: CPU time in ns by process and thread.
Spent = dict[tuple[int, int], int]


def spent(pid: int) -> Spent:
    """Read the scheduler's CPU time of each thread of the process and of its descendants."""
    counted: Spent = {}
    for process in family(pid):
        for folder in Path(f"/proc/{process}/task").iterdir():
            try:
                counted[process, int(folder.name)] = int((folder / "schedstat").read_text().split()[0])
            except OSError:  # the thread has ended
                continue
    return counted


def cpu_s(before: Spent, after: Spent) -> float:
    """Compute the CPU time between two readings.

    Raises:
        RuntimeError: If a thread has ended in between, since its CPU time is lost.
    """
    if not before.keys() <= after.keys():
        raise RuntimeError("threads of the server ended during the measurement; their CPU time is unknown")
    return sum(ns - before.get(thread, 0) for thread, ns in after.items()) / 1e9


def ticks(pid: int) -> tuple[int, int]:
    """Read user and system time of the process and its descendants, in ticks of the system's clock."""
    user = system = 0
    for process in family(pid):
        # Fields 14 and 15; the name before them may contain spaces.
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        user, system = user + int(fields[11]), system + int(fields[12])
    return user, system


def family(pid: int) -> list[int]:
    """Return the process and all its descendants."""
    parents = dict(_parents())
    found = [pid]
    for parent in found:  # grows while it is read
        found.extend(child for child, its_parent in parents.items() if its_parent == parent)
    return found


def _parents() -> Iterator[tuple[int, int]]:
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                # The name is in parentheses, and may contain spaces and parentheses.
                yield int(entry), int(Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue


def open_files(pid: int) -> int:
    """Count the open files, sockets and pipes of the process."""
    return len(os.listdir(f"/proc/{pid}/fd"))


def resident_mb(pid: int) -> float:
    """Return resident memory, counted page by page: the quick counters of /proc/PID/status may lag."""
    found = re.search(r"^Rss:\s+(\d+) kB", Path(f"/proc/{pid}/smaps_rollup").read_text(), re.MULTILINE)
    return int(found.group(1)) / 1024 if found else float("nan")
