"""A service of raw bytes on 127.0.0.1: what a server may send that no library of servers would."""

import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

Pieces = Iterable[bytes]


@dataclass
class RawService:
    """A running service.

    Attributes:
        url: Base URL.
        heads: Heads of the requests.
        sent: Bytes sent on each connection that has ended.
        ended: Set when a connection has ended.
        connections: Number of connections.
    """

    url: str
    heads: list[str] = field(default_factory=list)
    sent: list[int] = field(default_factory=list)
    ended: threading.Event = field(default_factory=threading.Event)
    connections: int = 0


def _serve(connection: socket.socket, service: RawService, respond: Callable[[str], Pieces]) -> None:
    sent = 0
    # Clients that disconnect are what these tests are about.
    with connection, suppress(OSError):
        connection.settimeout(60)
        while True:
            head = b""
            while b"\r\n\r\n" not in head:
                received = connection.recv(65536)
                if not received:
                    return
                head += received
            service.heads.append(head.decode("latin-1"))
            try:
                for piece in respond(head.decode("latin-1")):
                    connection.sendall(piece)
                    sent += len(piece)
            finally:
                service.sent.append(sent)
                service.ended.set()


@contextmanager
def raw_service(respond: Callable[[str], Pieces]) -> Iterator[RawService]:
    """Service that responds to each request with the pieces that the function returns for its head."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        service = RawService(f"http://127.0.0.1:{listener.getsockname()[1]}")

        def accept() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    service.connections += 1
                    threading.Thread(target=_serve, args=(connection, service, respond), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield service
        listener.shutdown(socket.SHUT_RDWR)


def response(body: bytes, *headers: str, status: str = "200 OK") -> bytes:
    """A response with a length."""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body
