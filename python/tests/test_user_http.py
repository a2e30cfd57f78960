"""Classes of users in Python: redirects, cookies, compressed bodies, encodings."""

import gzip
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

import weir

_FIELDS = {
    "/start": (302, {"Location": "/landed?a=1", "Set-Cookie": "sid=abc; Path=/; HttpOnly"}, b""),
    "/other": (303, {"Location": "landed"}, b""),
    "/again": (307, {"Location": "/landed"}, b""),
    "/loop": (301, {"Location": "/loop"}, b""),
    "/gzip": (200, {"Content-Encoding": "gzip", "Content-Type": "application/json"}, gzip.compress(b'{"a": 1}')),
    "/latin": (200, {"Content-Type": "text/plain; charset=iso-8859-1", "X-Two": "2"}, "café".encode("latin-1")),
    "/out": (200, {"Set-Cookie": "sid=gone; Path=/; Max-Age=0"}, b""),
}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    seen: list[tuple[str, str, str | None, bytes]]

    def respond(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.seen.append((self.command, self.path, self.headers["Cookie"], body))
        status, fields, content = _FIELDS.get(self.path.split("?")[0], (200, {}, b"landed"))
        self.send_response(status)
        for name, value in fields.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    do_GET = do_POST = do_HEAD = respond  # noqa: N815  names of http.server

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


@pytest.fixture
def shop() -> Iterator[tuple[str, list[Any]]]:
    seen: list[Any] = []
    with ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"seen": seen})) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}", seen
        server.shutdown()
        thread.join()


def _play(url: str, do: Any, users: int = 1) -> weir.Run:
    kind: Any = type("Visitor", (weir.User,), {"do": weir.task(do)})
    return weir.load(kind, host=url, users=users, loops=1)


def test_redirects_are_followed_under_the_same_step(shop: tuple[str, list[Any]]) -> None:
    url, seen = shop
    got: dict[str, object] = {}

    async def do(self: weir.User) -> None:
        r = await self.get("/start", name="start")
        got.update(url=r.url, history=[one.status for one in r.history], text=r.text, cookies=r.history[0].cookies)
        await self.post("/other", data="x")
        await self.post("/again", data="y")
        r = await self.get("/start", allow_redirects=False, name="start")
        got["location"] = r.headers["location"]
        await self.head("/landed")

    run = _play(url, do)
    assert got == {
        "url": f"{url}/landed?a=1",
        "history": [302],
        "text": "landed",
        "cookies": {"sid": "abc"},
        "location": "/landed?a=1",
    }
    assert seen == [
        ("GET", "/start", None, b""),
        ("GET", "/landed?a=1", "sid=abc", b""),
        ("POST", "/other", "sid=abc", b"x"),
        ("GET", "/landed", "sid=abc", b""),
        ("POST", "/again", "sid=abc", b"y"),
        ("POST", "/landed", "sid=abc", b"y"),
        ("GET", "/start", "sid=abc", b""),
        ("HEAD", "/landed", "sid=abc", b""),
    ]
    assert {step.name: step.requests for step in run.steps} == {
        "start": 3,
        "POST /other": 2,
        "POST /again": 2,
        "HEAD /landed": 1,
    }


def test_a_loop_of_redirects_ends(shop: tuple[str, list[Any]]) -> None:
    url, seen = shop

    async def do(self: weir.User) -> None:
        await self.get("/loop")

    run = _play(url, do)
    assert len(seen) == 31
    assert run.steps[0].failed == 1
    assert "redirects" in run.steps[0].samples[0].reason


def test_each_user_has_cookies_of_its_own(shop: tuple[str, list[Any]]) -> None:
    url, seen = shop

    async def do(self: weir.User) -> None:
        if self.number == 0:
            await self.get("/start", allow_redirects=False)
            await self.get("/mine")
            await self.get("/out")
        await self.get(f"/last/{self.number}")

    _play(url, do, users=2)
    cookies = {path: cookie for _, path, cookie, _ in seen}
    assert cookies == {"/start": None, "/mine": "sid=abc", "/out": "sid=abc", "/last/0": None, "/last/1": None}


def test_bodies_are_decoded_when_they_are_looked_at(shop: tuple[str, list[Any]]) -> None:
    url, _ = shop
    got: list[object] = []

    async def do(self: weir.User) -> None:
        r = await self.get("/gzip", headers={"Accept-Encoding": "gzip"})
        got.extend([r.json(), r.text, r.content])
        r = await self.get("/latin")
        got.extend([r.text, r.encoding, r.headers["X-TWO"], r.headers.get("x-none"), r.reason])

    _play(url, do)
    assert got == [{"a": 1}, '{"a": 1}', b'{"a": 1}', "café", "iso-8859-1", "2", None, "OK"]


def test_requests_that_would_break_are_not_sent(shop: tuple[str, list[Any]]) -> None:
    url, _ = shop

    async def do(self: weir.User) -> None:
        with pytest.raises(ValueError, match="invalid method"):
            await self.request("NOT A METHOD", "/x")
        with pytest.raises(ValueError, match="line break"):
            await self.get("/x", headers={"X": "a\r\nb"})

    run = _play(url, do)
    assert run.requests.total == 0
