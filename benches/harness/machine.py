"""Where the numbers were measured: without it they mean nothing."""

from __future__ import annotations

import os
import platform
import resource
from datetime import datetime, timezone
from pathlib import Path


def describe() -> dict[str, str]:
    """Date, processor, memory, kernel, system and Python, in words."""
    return {
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "processor": f"{_field('/proc/cpuinfo', 'model name')}, {os.cpu_count()} cores",
        "memory": f"{_memory_gb():.0f} GB",
        "kernel": f"{platform.system()} {platform.release()}",
        "system": _system(),
        "python": platform.python_version(),
    }


def cores() -> tuple[int, int]:
    """The core for the server and the one for the generator; the same if there is only one."""
    usable = sorted(os.sched_getaffinity(0))
    return usable[0], usable[min(1, len(usable) - 1)]


def raise_file_limit() -> None:
    """Let everything started from here open as many files as the system allows."""
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
