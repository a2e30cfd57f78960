"""Turn of a load: one at a time, since two at once measure each other."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["turn"]


@contextmanager
def turn(lock: Path) -> Iterator[None]:
    """Wait for the lock file, and hold it for the block.

    The kernel releases the lock of a process that ends, however it ends.

    Raises:
        OSError: The file cannot be opened or locked.
    """
    file = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
    finally:
        os.close(file)
