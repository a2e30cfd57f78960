"""Readers of the event stream of a live page, as many as asked for, until killed.

python benches/scripts/spectators.py PORT COUNT TOKEN
"""

from __future__ import annotations

import selectors
import socket
import sys
import time


def main(port: int, count: int, token: str) -> None:
    """Wait for the page, open its event stream as often as asked, and read."""
    selector = selectors.DefaultSelector()
    head = f"GET /api/events HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n\r\n"
    while len(selector.get_map()) < count:
        try:
            reader = socket.create_connection(("127.0.0.1", port))
        except ConnectionRefusedError:
            time.sleep(0.02)
            continue
        reader.sendall(head.encode())
        selector.register(reader, selectors.EVENT_READ)
    while selector.get_map():
        for key, _ in selector.select():
            reader = key.fileobj
            assert isinstance(reader, socket.socket)
            if not reader.recv(1 << 20):
                selector.unregister(reader)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
