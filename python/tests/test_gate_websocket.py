"""WebSockets through a gateway: cases of RFC 6455, valid and not, by byte and by library; each as without a gateway."""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from threading import Thread
from urllib.parse import urlsplit

import pytest
from programs import binary, started
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect
from websockets.sync.server import Server, ServerConnection, serve
from websockets.typing import Subprotocol

TIMEOUT_S = 20
MASK = b"\x12\x34\x56\x78"
CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10
KEY = "dGhlIHNhbXBsZSBub25jZQ=="
"""The key of RFC 6455, section 1.3."""
ACCEPT = b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
"""What belongs to it."""
EURO = "€".encode()


def frame(opcode: int, payload: bytes = b"", *, fin: bool = True, rsv: int = 0, mask: bytes | None = MASK) -> bytes:
    """Make a frame as RFC 6455, section 5.2 has it, also an invalid one."""
    first = (0x80 if fin else 0) | rsv << 4 | opcode
    masked = 0x80 if mask else 0
    if len(payload) < 126:
        head = bytes([first, masked | len(payload)])
    elif len(payload) < 1 << 16:
        head = struct.pack("!BBH", first, masked | 126, len(payload))
    else:
        head = struct.pack("!BBQ", first, masked | 127, len(payload))
    if mask is None:
        return head + payload
    key = (mask * (len(payload) // 4 + 1))[: len(payload)]
    return head + mask + (int.from_bytes(payload, "big") ^ int.from_bytes(key, "big")).to_bytes(len(payload), "big")


def count(received: bytes) -> int:
    """Count the complete frames of a service."""
    number = 0
    while len(received) >= 2:
        size, head = received[1] & 0x7F, 2
        if size >= 126:
            head += 2 if size == 126 else 8
            size = int.from_bytes(received[2:head], "big")
        if len(received) < head + size:
            break
        received = received[head + size :]
        number += 1
    return number


END = frame(CLOSE, struct.pack("!H", 1000))
VALID = {
    **{f"text of {size}": [frame(TEXT, b"*" * size)] for size in (0, 1, 125, 126, 127, 128, 65_535, 65_536)},
    **{f"binary of {size}": [frame(BINARY, b"\xfe" * size)] for size in (0, 125, 126, 65_536, 1_000_000)},
    "ping without payload": [frame(PING)],
    "ping of 125 bytes": [frame(PING, b"\xff" * 125)],
    "ten pings": [frame(PING, bytes([number])) for number in range(10)],
    "pong that was not asked for": [frame(PONG, b"!"), frame(PING, b"?")],
    "fragments": [frame(TEXT, b"a", fin=False), frame(CONTINUATION, b"b", fin=False), frame(CONTINUATION, b"c")],
    "ping within fragments": [frame(TEXT, b"a", fin=False), frame(PING, b"p"), frame(CONTINUATION, b"b")],
    "empty fragments": [frame(TEXT, fin=False), frame(CONTINUATION, fin=False), frame(CONTINUATION)],
    "character over fragments": [frame(TEXT, EURO[:1], fin=False), frame(CONTINUATION, EURO[1:])],
    "unused mask": [frame(TEXT, b"open", mask=bytes(4))],
    "hundred messages": [frame(TEXT, str(number).encode()) for number in range(100)],
}
INVALID = {
    "no mask": [frame(TEXT, b"open", mask=None)],
    "ping of 126 bytes": [frame(PING, b"\xff" * 126)],
    "ping in fragments": [frame(PING, b"p", fin=False), frame(CONTINUATION, b"q")],
    **{f"reserved bits {rsv}": [frame(TEXT, b"bits", rsv=rsv)] for rsv in range(1, 8)},
    **{f"opcode {opcode}": [frame(opcode, b"?")] for opcode in (3, 4, 5, 6, 7, 11, 12, 13, 14, 15)},
    "continuation of nothing": [frame(CONTINUATION, b"?"), frame(TEXT, b"more")],
    "message within fragments": [frame(TEXT, b"a", fin=False), frame(TEXT, b"b")],
    "no UTF-8": [frame(TEXT, b"\xce\xba\xe1\xbd\xb9\xcf\x83\xed\xa0\x80")],
    "no UTF-8 in a fragment": [frame(TEXT, EURO[:2], fin=False), frame(CONTINUATION, b"x")],
}
CLOSES = {
    "without payload": b"",
    "with one byte": b"\x03",
    "with a reason": struct.pack("!H", 1000) + b"done",
    "with the longest reason": struct.pack("!H", 1000) + b"*" * 123,
    "with a reason too long": struct.pack("!H", 1000) + b"*" * 124,
    "with a reason that is no UTF-8": struct.pack("!H", 1000) + b"\xff\xfe",
    **{
        f"with code {code}": struct.pack("!H", code)
        for code in (0, 999, 1000, 1001, 1002, 1003, 1004, 1005, 1006, 1007, 1011, 1015, 1016, 2999, 3000, 4999, 5000)
    },
}
CASES = VALID | INVALID | {f"close {name}": [frame(CLOSE, payload)] for name, payload in CLOSES.items()}


def echo(connection: ServerConnection) -> None:
    """Return each message until the end."""
    try:
        for message in connection:
            connection.send(message)
    except ConnectionClosed:
        pass


@contextmanager
def service() -> Iterator[str]:
    """Address of an echo service."""
    server: Server = serve(echo, "127.0.0.1", 0, max_size=None, subprotocols=[Subprotocol("chat")], close_timeout=5)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        host, port = server.socket.getsockname()
        yield f"ws://{host}:{port}"
    finally:
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def ways() -> Iterator[tuple[str, str]]:
    """Address of the service, and of a gateway in front of it."""
    with ExitStack() as stack:
        direct = stack.enter_context(service())
        upstream = direct.replace("ws:", "http:")
        gate = stack.enter_context(started(str(binary()), "gate", "--upstream", upstream, "--listen", "127.0.0.1:0"))
        assert gate.stdout
        line = gate.stdout.readline()
        assert line, gate.stderr and gate.stderr.read()
        yield direct, json.loads(line)["listening"].replace("http:", "ws:")


def spoken(url: str, frames: list[bytes], piece: int, replies: int) -> tuple[bytes, bytes]:
    """Send frames in pieces of this size, and a close after this number of replies, if any are awaited.

    Return the head of the response and all bytes after it, up to the end.
    """
    host, port = urlsplit(url).hostname, urlsplit(url).port
    assert host
    assert port
    with socket.create_connection((host, port), timeout=TIMEOUT_S) as peer:
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        peer.sendall(
            f"GET /echo HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: "
            f"{KEY}\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: chat\r\n\r\n".encode()
        )
        received = b""
        while b"\r\n\r\n" not in received:
            more = peer.recv(1)
            assert more, received
            received += more
        head, received = received.split(b"\r\n\r\n", 1)
        everything = b"".join(frames)

        def write() -> None:
            try:
                for begin in range(0, len(everything), piece):
                    peer.sendall(everything[begin : begin + piece])
            except OSError:
                pass  # the service has closed already

        writer = Thread(target=write)
        writer.start()
        try:
            while more := peer.recv(1 << 20):
                received += more
                if replies and count(received) == replies:
                    replies = 0
                    writer.join()
                    peer.sendall(END)
        except ConnectionResetError:
            pass  # it had not read all
        writer.join()
    return head, received


def replies(name: str) -> int:
    """Return how many frames a service sends for a valid case: one for each message and ping."""
    ends = [one for one in VALID.get(name, []) if one[0] & 0x80 and one[0] & 0xF != PONG]
    return len(ends)


@pytest.mark.parametrize("name", CASES)
def test_a_case_is_answered_byte_by_byte_as_without_a_gateway(name: str, ways: tuple[str, str]) -> None:
    direct, through = ways
    frames = CASES[name]
    pieces = [1 << 20] if sum(map(len, frames)) > 1000 else [1 << 20, 7, 1]
    for piece in pieces:
        (_, expected), (head, received) = (spoken(url, frames, piece, replies(name)) for url in (direct, through))
        assert ACCEPT in head
        assert received == expected
        assert count(received) > replies(name), "and a close"


def test_compressed_messages_and_subprotocols_are_as_without_a_gateway(ways: tuple[str, str]) -> None:
    messages: list[str | bytes] = ["a" * 100_000, "€" * 1000, b"\x00\xff" * 5000, ""]
    for url in ways:
        with connect(url, subprotocols=[Subprotocol("chat")], max_size=None, open_timeout=TIMEOUT_S) as client:
            assert client.subprotocol == "chat"
            assert "permessage-deflate" in client.response.headers["Sec-WebSocket-Extensions"]  # type: ignore[union-attr]
            for message in messages:
                client.send(message)
                assert client.recv(TIMEOUT_S) == message
            client.send(["in ", "three ", "fragments"])
            assert client.recv(TIMEOUT_S) == "in three fragments"
            assert client.ping().wait(TIMEOUT_S)


def test_a_handshake_without_a_version_is_rejected_by_the_service(ways: tuple[str, str]) -> None:
    for url in ways:
        with pytest.raises(InvalidStatus) as failed:
            connect(
                url,
                subprotocols=[Subprotocol("chat")],
                additional_headers={"Sec-WebSocket-Version": "12"},
                open_timeout=TIMEOUT_S,
            )
        assert failed.value.response.status_code in (400, 426)
