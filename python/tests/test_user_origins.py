"""Credentials of users in Python belong to an origin: over redirects, absolute URLs, and from the command line."""

import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from programs import finished

import weir

START = "from weir import _script; _script.main()"

_SECRETS = ("authorization", "proxy-authorization", "x-api-key", "x-auth-token", "cookie")


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    seen: list[tuple[str, list[str]]]

    def do_GET(self) -> None:
        self.seen.append((self.path.split("/to/")[0], [name for name in _SECRETS if name in self.headers]))
        _, has_place, place = self.path.partition("/to/")
        self.send_response(302 if has_place else 200)
        if has_place:
            self.send_header("Location", unquote(place))
        if self.path.startswith("/set"):
            self.send_header("Set-Cookie", "jar=1; Path=/")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


@pytest.fixture
def services() -> Iterator[list[tuple[str, list[Any]]]]:
    """Two services: URL, and the path and secret headers of each request."""
    found: list[tuple[str, list[Any]]] = []
    servers = []
    for _ in range(2):
        seen: list[Any] = []
        server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"seen": seen}))
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}).start()
        servers.append(server)
        found.append((f"http://127.0.0.1:{server.server_address[1]}", seen))
    yield found
    for server in servers:
        server.shutdown()
        server.server_close()


def _play(do: Any, host: str, **options: Any) -> weir.Run:
    kind: Any = type("Visitor", (weir.User,), {"do": weir.task(do), "headers": {"X-Auth-Token": "of-class"}})
    return weir.load(kind, host=host, users=1, loops=1, **options)


def test_no_secret_header_follows_a_redirect_to_another_origin_or_comes_back(
    services: list[tuple[str, list[Any]]],
) -> None:
    (first, at_first), (second, at_second) = services

    async def do(self: weir.User) -> None:
        own = {"X-Api-Key": "k", "Proxy-Authorization": "p"}
        await self.get(f"/a/to/{second}/b/to/{first}/c", headers=own, auth=("me", "pw"), cookies={"c": "1"})

    _play(do, first)
    everything = ["authorization", "proxy-authorization", "x-api-key", "x-auth-token", "cookie"]
    assert at_first == [("/a", everything), ("/c", [])]
    assert at_second == [("/b", [])]


def test_redirects_within_an_origin_keep_all(services: list[tuple[str, list[Any]]]) -> None:
    (first, at_first), _ = services

    async def do(self: weir.User) -> None:
        await self.get(f"/a/to/{first}/b", headers={"X-Api-Key": "k"}, auth=("me", "pw"), cookies={"c": "1"})

    _play(do, first)
    everything = ["authorization", "x-api-key", "x-auth-token", "cookie"]
    assert at_first == [("/a", everything), ("/b", everything)]


def test_cookies_of_the_jar_go_by_host_and_not_by_port(services: list[tuple[str, list[Any]]]) -> None:
    (first, _), (second, at_second) = services

    async def do(self: weir.User) -> None:
        await self.get("/set")
        await self.get(f"/a/to/{second}/b")
        await self.get(f"/a/to/{second.replace('127.0.0.1', 'localhost')}/c")

    _play(do, first)
    assert at_second == [("/b", ["cookie"]), ("/c", [])]


def test_credentials_of_the_load_go_to_its_host_and_those_of_the_class_to_all_urls_of_tasks(
    services: list[tuple[str, list[Any]]],
) -> None:
    (first, at_first), (second, at_second) = services

    async def do(self: weir.User) -> None:
        await self.get("/a")
        await self.get(f"{second}/b")
        await self.get(f"{second}/c", headers={"X-Api-Key": "k"})

    _play(do, first, headers={"Authorization": "Bearer x"})
    assert at_first == [("/a", ["authorization", "x-auth-token"])]
    assert at_second == [("/b", ["x-auth-token"]), ("/c", ["x-api-key", "x-auth-token"])]


def test_a_locustfile_has_the_credentials_of_the_command_line_at_its_host_alone(
    services: list[tuple[str, list[Any]]], tmp_path: Path
) -> None:
    pytest.importorskip("greenlet", reason="no greenlet; pip install 'weir-http[locust]'")
    (first, at_first), (second, at_second) = services
    file = tmp_path / "locustfile.py"
    file.write_text(
        f"""
from locust import HttpUser, task

class Visitor(HttpUser):
    @task
    def visit(self):
        self.client.headers["X-Api-Key"] = "of-session"
        self.client.get("/a")
        self.client.get("{second}/b")
        self.client.get("/c/to/{second}/d")
"""
    )
    flags = ("--users", "1", "--loops", "1", "-H", "Authorization: Bearer x")
    done = finished(sys.executable, "-c", START, "load", "-s", "locustfile.py", first, *flags, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert at_first == [("/a", ["authorization", "x-api-key"]), ("/c", ["authorization", "x-api-key"])]
    assert at_second == [("/b", ["x-api-key"]), ("/d", [])]
