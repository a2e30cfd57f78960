"""Service on the loopback interface that keeps all requests and its responses, for `hurl_equality.py`."""

from __future__ import annotations

import base64
import gzip
import json
import socket
import threading
import time
import zlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import BinaryIO, TypeAlias

Address: TypeAlias = tuple[str, int]
Header: TypeAlias = tuple[str, str]

TEXT_TYPE = "text/plain; charset=utf-8"
JSON_TYPE = "application/json"
BYTES_TYPE = "application/octet-stream"


@dataclass(frozen=True)
class RecordedRequest:
    """A request as it has arrived."""

    method: str
    target: str
    headers: tuple[Header, ...]
    body: bytes

    @classmethod
    def parsed(cls, head: bytes, body: bytes) -> RecordedRequest:
        """Read the lines of a head."""
        line, *fields = head.decode("latin-1").split("\r\n")
        method, target, _ = line.split(" ", 2)
        parted = [field.split(":", 1) for field in fields if field]
        return cls(method, target, tuple((name.strip(), value.strip()) for name, value in parted), body)

    @property
    def path(self) -> str:
        """The target without its query."""
        return self.target.split("?")[0].split("#")[0]

    @property
    def parts(self) -> list[str]:
        """Parts of the path; the first one is the name of the route."""
        return self.path.strip("/").split("/")

    def header(self, name: str, default: str = "") -> str:
        """Return the last header of this name, which is in lower case."""
        return {name.lower(): value for name, value in self.headers}.get(name, default)


@dataclass(frozen=True)
class Response:
    """What a route answers."""

    content: bytes = b""
    content_type: str = TEXT_TYPE
    status: int = 200
    headers: tuple[Header, ...] = ()

    def encoded(self, method: str) -> bytes:
        """Return its bytes on the connection, without the content if it answers a HEAD."""
        fields = [("Content-Type", self.content_type), ("Content-Length", str(len(self.content))), *self.headers]
        lines = [f"HTTP/1.1 {self.status} X", *(f"{name}: {value}" for name, value in fields)]
        head = "\r\n".join(lines).encode() + b"\r\n\r\n"
        return head if method == "HEAD" else head + self.content


@dataclass
class Exchange:
    """A request and the bytes of its response, which are empty until it is answered."""

    request: RecordedRequest
    response: bytes = b""


class RecordingService:
    """HTTP/1.1 service on the loopback interface; it keeps all requests and responses in order."""

    def __init__(self, upstream: Address | None = None) -> None:
        """Listen on a free port; with an upstream, that service answers."""
        self.exchanges: list[Exchange] = []
        self._counts = Counter[str]()
        self._upstream = upstream
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Accept no more connections."""
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as stream:
            while message := _read_message(stream):
                exchange = Exchange(RecordedRequest.parsed(*message))
                # A request is recorded even if its client does not wait for the response.
                self.exchanges.append(exchange)
                if self._upstream:
                    exchange.response = _relayed(self._upstream, *message)
                else:
                    exchange.response = self._answer(exchange.request).encoded(exchange.request.method)
                try:
                    connection.sendall(exchange.response)
                except OSError:
                    return
                if b"connection: close" in exchange.response.split(b"\r\n\r\n", 1)[0].lower():
                    return

    def _answer(self, request: RecordedRequest) -> Response:
        name = request.parts[0]
        if name in CONSTANTS:
            return CONSTANTS[name]
        if name not in ROUTES:
            return Response(b"not found", status=404)
        self._counts[request.path] += 1
        return ROUTES[name](request, self._counts[request.path])


def _read_message(stream: BinaryIO) -> tuple[bytes, bytes] | None:
    """Head and body of a request; None at the end of the connection."""
    lines: list[bytes] = []
    while True:
        try:
            line = stream.readline()
        except OSError:
            return None
        if not line:
            return None
        if line in (b"\r\n", b"\n"):
            break
        lines.append(line.rstrip(b"\r\n"))
    length = next((int(line.split(b":")[1]) for line in lines if line.lower().startswith(b"content-length:")), 0)
    return b"\r\n".join(lines), stream.read(length)


def _relayed(upstream: Address, head: bytes, body: bytes) -> bytes:
    """Response of another service."""
    line, *fields = [line for line in head.split(b"\r\n") if not line.lower().startswith((b"connection:", b"host:"))]
    host = f"Host: {upstream[0]}:{upstream[1]}".encode()
    with socket.create_connection(upstream) as connection, connection.makefile("rb") as stream:
        connection.sendall(b"\r\n".join([line, host, *fields, b"Connection: close"]) + b"\r\n\r\n" + body)
        return stream.read()


# --- Responses that are always the same, by the name of their route

DOCUMENT = r"""{
  "token": "abc123", "count": 7, "price": 1.5, "ok": true, "none": null, "big": 123456789012345678901234567890,
  "items": [{"id": 1, "name": "one"}, {"id": 2, "name": "two"}, {"id": 3, "name": "three"}],
  "empty_list": [], "empty_text": "", "empty_object": {}, "text_number": "12", "spaced_number": " 12 ",
  "text_float": "1.25", "csv": "a,b,c", "uuid": "123e4567-e89b-42d3-a456-426614174000", "v4": "10.0.0.1",
  "v6": "2001:db8::1", "date": "2026-01-31T12:00:00Z", "day": "2026-01-31", "far": "2999-12-31",
  "rfc2822": "Sat, 31 Jan 2026 12:00:00 GMT", "html": "&lt;b&gt;&amp;&eacute;&#32;&nbsp;", "markup": "<a href=\"x\">'&",
  "link": "http://h/p?q=a b", "encoded": "a%20b+c%2F%C3%BC", "b64": "SGVsbG8=", "b64url": "-_8",
  "json_text": "{\"inner\": [1, 2]}", "page": "<p>some <b>bold</b></p>"
}
"""
HTML = """<!DOCTYPE html>
<html><head><title>Shop &amp; Co</title><meta name="csrf" content="t-1"><link rel=x href=y></head>
<body><h1>Shop</h1><p>  a
 b </p><ul><li class=a>one<li>two<li>three</ul>
<a class="big buy" href="/buy?id=1&amp;n=2">buy</a><form action=/x><input name=q disabled><br></form></body></html>
"""
XML = """<?xml version="1.0" encoding="utf-8"?>
<shop xmlns:x="urn:x"><item id="1"><name>one</name><price>1.5</price></item>
<item id="2"><name>two</name><price>2</price></item><x:note>n</x:note><text><![CDATA[a<b]]> &amp; c</text></shop>
"""
# "hello brotli\n" in a brotli stream of one uncompressed block.
BROTLI = bytes([0x0B, 0x06, 0x80]) + b"hello brotli\n" + bytes([0x03])


def _compressed(content: bytes, coding: str) -> Response:
    return Response(content, headers=(("Content-Encoding", coding),))


CONSTANTS = {
    "": Response(b"hello weir\n"),
    "text": Response(b"hello weir\n"),
    "json": Response(DOCUMENT.encode(), JSON_TYPE, headers=(("X-Id", "one"), ("X-Many", "a"), ("X-Many", "b"))),
    "html": Response(HTML.encode(), "text/html; charset=utf-8"),
    "xml": Response(XML.encode(), "application/xml"),
    "bytes": Response(bytes([0, 255, 254, 1]), BYTES_TYPE),
    "latin1": Response("café".encode("latin-1"), "text/plain; charset=iso-8859-1"),
    "utf16": Response('{"a": "é"}'.encode("utf-16-le"), "application/json; charset=utf-16le"),
    "gzip": _compressed(gzip.compress(b"hello gzip\n", mtime=0), "gzip"),
    "deflate": _compressed(zlib.compress(b"hello deflate\n"), "deflate"),
    "br": _compressed(BROTLI, "br"),
    "unknown-encoding": _compressed(b"x", "x-new"),
}


# --- Routes whose response depends on the request, or on how many requests its path has had

Route: TypeAlias = Callable[[RecordedRequest, int], Response]

COOKIES = (
    "sid=abc; Path=/; HttpOnly; SameSite=Lax",
    "deep=1; Path=/cookies/sub; Max-Age=3600",
    "gone=1; Max-Age=0",
    "old=1; Expires=Wed, 01 Jan 2020 00:00:00 GMT",
    "elsewhere=1; Domain=example.org",
    "safe=1; Secure; Path=/",
)
BASIC = "Basic " + base64.b64encode(b"bob:secret pw").decode()


def _echo(request: RecordedRequest, _count: int) -> Response:
    return Response(request.body, request.header("content-type", BYTES_TYPE))


def _cookies(request: RecordedRequest, _count: int) -> Response:
    if request.parts[-1] == "set":
        return Response(headers=tuple(("Set-Cookie", cookie) for cookie in COOKIES))
    return Response(request.header("cookie").encode())


def _redirect(request: RecordedRequest, _count: int) -> Response:
    """/redirect/N: N redirects."""
    if request.parts[-1] == "0":
        return Response(b"here")
    return Response(status=302, headers=(("Location", f"/redirect/{int(request.parts[1]) - 1}"),))


def _redirect_to_echo(request: RecordedRequest, _count: int) -> Response:
    """/redirect-to/STATUS."""
    return Response(status=int(request.parts[1]), headers=(("Location", "/echo"),))


def _basic(request: RecordedRequest, _count: int) -> Response:
    if request.header("authorization") == BASIC:
        return Response()
    return _unauthorized('Basic realm="r"')


def _digest(request: RecordedRequest, _count: int) -> Response:
    if request.header("authorization").startswith("Digest"):
        return Response(b"welcome bob")
    return _unauthorized('Digest realm="r", nonce="n1", qop="auth", algorithm=MD5')


def _unauthorized(challenge: str) -> Response:
    return Response(status=401, headers=(("WWW-Authenticate", challenge),))


def _flaky(request: RecordedRequest, count: int) -> Response:
    """/flaky/NAME/N: the request N of this path is the first one to succeed."""
    if count < int(request.parts[2]):
        return Response(b"not yet", status=500)
    return Response(f"ok after {count}".encode())


def _counter(_request: RecordedRequest, count: int) -> Response:
    return Response(json.dumps({"count": count}).encode(), JSON_TYPE)


def _slow(request: RecordedRequest, _count: int) -> Response:
    """/slow/MILLISECONDS."""
    time.sleep(int(request.parts[1]) / 1000)
    return Response(b"ok")


def _status(request: RecordedRequest, _count: int) -> Response:
    """/status/STATUS."""
    return Response(b"status", status=int(request.parts[1]))


ROUTES: dict[str, Route] = {
    "echo": _echo,
    "cookies": _cookies,
    "redirect": _redirect,
    "redirect-to": _redirect_to_echo,
    "basic": _basic,
    "digest": _digest,
    "flaky": _flaky,
    "counter": _counter,
    "slow": _slow,
    "status": _status,
}
