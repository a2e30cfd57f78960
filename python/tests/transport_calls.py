"""Calls through transports and through the libraries' own, and what both may meet."""

import itertools
import time
from collections.abc import Callable, Iterator
from typing import Any

import anyio
import httpx
import httpx2
import pytest
from raw_service import Pieces, response

import weir

LIBRARIES = [pytest.param(httpx2, id="httpx2"), pytest.param(httpx, id="httpx")]
"""Libraries that have transports of the same interface."""
LOOPS = ["blocking", "asyncio", "trio"]
"""Ways to call them."""

ODD: dict[str, bytes] = {
    "order and case": b"HTTP/1.1 200 Fine\r\nX-B: 1\r\nx-a: 2\r\nX-B: 3\r\nContent-Length: 2\r\n"
    b"Set-Cookie: a=b\r\n\r\nok",
    "no reason": b"HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n",
    "chunked": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    "trailers": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX-Sum: 7\r\n\r\n",
    "until the close": b"HTTP/1.0 200 OK\r\nConnection: close\r\n\r\nabc",
    "interim": b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx",
    "latin": b"HTTP/1.1 200 OK\r\nX-Name: caf\xe9\r\nContent-Length: 0\r\n\r\n",
    "redirect": b"HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n",
    "gzip": b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc",
}


BROKEN: dict[str, bytes] = {
    "nothing": b"",
    "half a head": b"HTTP/1.1 200 OK\r\nContent-Le",
    "garbage": b"SSH-2.0-OpenSSH_9.2\r\n\r\n",
    "cut body": b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc",
    "cut large body": b"HTTP/1.1 200 OK\r\nContent-Length: 999999\r\n\r\nabc",
    "cut chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nabc",
    "bad chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n0\r\n\r\n",
    "two lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
}


class Calls:
    """Calls of a library by a transport, in one of the ways that it has."""

    def __init__(self, library: Any, loop: str, **options: Any) -> None:
        """Take a library, ``blocking`` or a name of anyio's backends, and options of the transport."""
        self.library, self.loop, self.options = library, loop, options
        self.module = getattr(weir, library.__name__)

    def request(self, method: str, url: str, *, own: bool = False, **arguments: Any) -> Any:
        """Make one call with a client of its own, by weir's transport or the library's own."""
        timeout = arguments.pop("timeout", 30)
        if self.loop == "blocking":
            transport = None if own else self.module.Transport(**self.options)
            with self.library.Client(transport=transport, timeout=timeout, trust_env=False, verify=False) as client:
                return client.request(method, url, **arguments)

        async def call() -> Any:
            transport = None if own else self.module.AsyncTransport(**self.options)
            client_type = self.library.AsyncClient
            async with client_type(transport=transport, timeout=timeout, trust_env=False, verify=False) as client:
                return await client.request(method, url, **arguments)

        return anyio.run(call, backend=self.loop)


def outcome(call: Callable[[], Any]) -> Any:
    """What a caller sees of a call: the response, or the exception with all its classes."""
    try:
        got = call()
    except Exception as error:
        return type(error).__mro__, getattr(error, "request", None) is not None
    dated = [(name, value) for name, value in got.headers.raw if name.lower() != b"date"]
    return got.status_code, got.reason_phrase, dated, got.content, got.http_version, str(got.url), got.is_closed


def closing(text: bytes) -> Callable[[str], Iterator[bytes]]:
    """Respond with bytes, and close the connection."""

    def respond(_: str) -> Iterator[bytes]:
        yield text
        raise OSError

    return respond


def requests_of(url: str) -> list[tuple[str, str, dict[str, Any]]]:
    """Two hundred requests to the test server: method, URL and arguments."""
    paths = [f"/status/{status}" for status in (200, 204, 301, 304, 400, 404, 418, 429, 500, 503)]
    paths += ["/headers", "/chunked?chunks=3", "/static?bytes=10", "/static?bytes=100000", "/no where", "/%7Ex?q=a b"]
    shapes: list[dict[str, Any]] = [
        {},
        {"headers": {"X-Mixed-Case": "1", "accept": "text/html"}},
        {"params": {"a": "1 2", "b": ["x", "y"]}},
    ]
    bodies: list[dict[str, Any]] = [{"content": b""}, {"content": b"abc"}, {"json": {"a": 1}}, {"data": {"f": "x y"}}]
    parts = {"Content-Type": "multipart/form-data; boundary=b"}
    bodies += [{"content": bytes(300_000)}, {"files": {"file": ("a.txt", b"text")}, "headers": parts}]
    methods = ("GET", "HEAD", "DELETE", "OPTIONS")
    requests = [(method, url + path, shape) for method, path, shape in itertools.product(methods, paths, shapes)]
    return requests + [("POST", url + "/echo", shape) for shape in bodies]


def silent(_: str) -> Iterator[bytes]:
    """Respond with nothing, and keep the connection."""
    time.sleep(20)
    yield b""


def stalled(_: str) -> Iterator[bytes]:
    """Respond with the beginning of a body, and keep the connection."""
    yield b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\nabc"
    time.sleep(20)


def failing(number: int, status: str = "503 Busy", extra: str = "") -> Callable[[str], Pieces]:
    """Fail the first requests."""
    count = itertools.count()

    def respond(_: str) -> Pieces:
        if next(count) < number:
            return [f"HTTP/1.1 {status}\r\n{extra}Content-Length: 0\r\n\r\n".encode()]
        return [response(b"ok")]

    return respond
