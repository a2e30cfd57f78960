"""Machine on which the numbers were measured."""

from __future__ import annotations

import os
import platform
import resource
from datetime import datetime, timezone
from pathlib import Path


def describe() -> dict[str, str]:
    """Return date, processor, memory, kernel, system and version of Python as text."""
    return {
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "processor": f"{_field('/proc/cpuinfo', 'model name')}, {os.cpu_count()} cores",
        "memory": f"{_memory_gb():.0f} GB",
        "kernel": f"{platform.system()} {platform.release()}",
        "system": _system(),
        "python": platform.python_version(),
    }


def cores() -> tuple[int, int]:
    """Return the cores of server and generator, equal if there is only one."""
    usable = sorted(os.sched_getaffinity(0))
    return usable[0], usable[min(1, len(usable) - 1)]


def raise_file_limit() -> None:
    """Raise the limit of open files to the system's maximum, for this process and its children."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _field(path: str, name: str) -> str:
    for line in Path(path).read_text().splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return "unknown"


def _memory_gb() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9


def _system() -> str:
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except OSError:
        return platform.platform()
