"""Servers that print their address."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def announced(command: list[str]) -> Iterator[str]:
    """Start a server that prints its address; return the URL."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            line = process.stdout.readline() if process.stdout else ""
            yield str(json.loads(line)["listening"])
        finally:
            process.terminate()
