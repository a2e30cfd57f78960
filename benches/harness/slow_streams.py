"""A caller over HTTP/2 that asks for much and reads nothing, in frames that no library would send."""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
HEADERS, RST_STREAM, SETTINGS, PING = 1, 3, 4, 6
PING_INTERVAL_S = 0.3
LONGEST_S = 5.0


def _frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def _request(stream: int, path: bytes) -> bytes:
    fields = ((b":method", b"GET"), (b":scheme", b"http"), (b":authority", b"localhost"), (b":path", path))
    block = b"".join(b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value for name, value in fields)
    return _frame(HEADERS, 5, stream, block)


@contextmanager
def slow_streams(port: int, path: str, *, streams: int) -> Iterator[list[int]]:
    """Keep this many streams open with windows of zero bytes; each that is reset is replaced.

    Yields the streams that were reset.
    """
    resets: list[int] = []
    connection = socket.create_connection(("127.0.0.1", port))
    connection.settimeout(PING_INTERVAL_S)
    connection.sendall(PREFACE + _frame(SETTINGS, 0, 0, struct.pack(">HI", 4, 0)))
    numbers = iter(range(1, 1 << 30, 2))
    for _ in range(streams):
        connection.sendall(_request(next(numbers), path.encode()))
    done = threading.Event()

    def keep() -> None:
        received = b""
        pinged_at = time.monotonic()
        while not done.is_set():
            try:
                if time.monotonic() - pinged_at >= PING_INTERVAL_S:
                    pinged_at = time.monotonic()
                    connection.sendall(_frame(PING, 0, 0, bytes(8)))
                more = connection.recv(65536)
            except TimeoutError:
                continue
            except OSError:
                return
            if not more:
                return
            received += more
            while len(received) >= 9 and len(received) >= 9 + (length := int.from_bytes(received[:3], "big")):
                kind, stream = received[3], int.from_bytes(received[5:9], "big")
                received = received[9 + length :]
                if kind == RST_STREAM:
                    resets.append(stream)
                    connection.sendall(_request(next(numbers), path.encode()))

    thread = threading.Thread(target=keep, daemon=True)
    thread.start()
    try:
        yield resets
    finally:
        done.set()
        thread.join(LONGEST_S)
        connection.close()
