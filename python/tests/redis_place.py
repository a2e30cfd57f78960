"""A private Redis server at a path."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from conftest import wait_for
from programs import redis_server, started


@contextmanager
def redis_at(place: Path) -> Iterator[None]:
    """Run a server at a socket with this path, which has a hundred characters at most."""
    command = [redis_server(), "--port", "0", "--save", "", "--unixsocket", str(place), "--dir", str(place.parent)]
    with started(*command, silent=True):
        wait_for(lambda: _responds(place))
        yield


def _responds(place: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as peer:
        try:
            peer.connect(str(place))
            peer.sendall(b"PING\r\n")
            return peer.recv(5) == b"+PONG"
        except OSError:
            return False
