"""A real service on 127.0.0.1, started before a test and stopped after it; and a browser for all of them."""

import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import Message
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from browser import Browser, chromium
from built_site import served, site_built_once
from rate_service import limited_service
from transport_calls import LIBRARIES, LOOPS

import weir

LONG = (
    "test_site",
    "test_site_access",
    "test_package",
    "test_typed_snippets",
    "test_pytest_plugin",
    "test_how_to",
    "test_page_others",
)
"""Files whose tests take longest, in that order; they begin, so that none is left when all others are done."""


@cache
def is_left_out(file: Path, chosen: str) -> bool:
    """Whether the text of a file says that none of its tests has the chosen markers, such as ``wide and not timed``."""
    if re.search(r"[()]|\bor\b", chosen):
        return False
    text = file.read_text("utf-8")
    excluded = set(re.findall(r"\bnot (\w+)", chosen))
    asked = set(re.findall(r"\w+", chosen)) - excluded - {"and", "not"}
    of_all = re.findall(r"^pytestmark = (\[.*?\]|[^\n]*)$", text, re.M | re.S)
    if excluded & set(re.findall(r"pytest\.mark\.(\w+)", " ".join(of_all))):
        return True
    # What needs the browser is wide.
    words = {name: rf"\b{name}\b" for name in asked} | ({"wide": r"\b(?:wide|browser)\b"} if "wide" in asked else {})
    return not all(re.search(word, text) for word in words.values())


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out files of other parts: each worker would import all of them, with the packages that they are about."""
    is_test = collection_path.name.startswith("test_") and collection_path.suffix == ".py"
    return (is_test and is_left_out(collection_path, config.option.markexpr)) or None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the files that take longest first; what needs the browser is for `make test-all`."""
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.wide)
        for name in ("wide", "timed", "soak"):
            if item.get_closest_marker(name) and is_left_out(item.path, name):
                raise pytest.UsageError(f"{item.nodeid}: the text of its file has to say that it is {name}")
    order = {name: place for place, name in enumerate(LONG)}
    items.sort(key=lambda item: order.get(item.path.stem, len(LONG)))


def wait_for(condition: Callable[[], bool]) -> None:
    """Wait until a condition holds; fail after half a minute."""
    until = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.002)


@dataclass(frozen=True)
class Seen:
    """A request as the service saw it."""

    method: str
    path: str
    headers: Message
    body: bytes


@dataclass
class Service:
    """A running service.

    ``/`` responds "hello"; ``/status?code=503`` with that status; ``/slow?ms=50`` after that time; ``/close`` closes
    the connection without a response; ``/garbage`` responds with bytes that are not HTTP.
    """

    url: str
    seen: list[Seen] = field(default_factory=list)
    asked: threading.Event = field(default_factory=threading.Event)
    """Set with the first request."""

    @property
    def port(self) -> int:
        """Listen port."""
        return urlsplit(self.url).port or 0


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Head and body are written separately: with Nagle's algorithm the body would wait for an acknowledgement, 40 ms.
    disable_nagle_algorithm = True
    service: Service

    def respond(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.service.seen.append(Seen(self.command, self.path, self.headers, body))
        self.service.asked.set()
        url = urlsplit(self.path)
        query = {name: int(values[0]) for name, values in parse_qs(url.query).items() if name in {"ms", "code"}}
        if url.path in {"/close", "/garbage"}:
            self.close_connection = True
            self.wfile.write(b"" if url.path == "/close" else b"220 this is a mail server\r\n")
            return
        # The service's own behaviour, not a wait of the test.
        time.sleep(query.get("ms", 0) / 1000)
        self.send_response(query.get("code", 200))
        self.send_header("Content-Length", "5")
        self.end_headers()
        self.wfile.write(b"hello")

    do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = respond  # noqa: N815  names of http.server

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore disconnected clients; some tests disconnect."""


@contextmanager
def running_service() -> Iterator[Service]:
    """Service that runs within the block."""
    handler = type("Handler", (_Handler,), {})
    with _Server(("127.0.0.1", 0), handler) as server:
        handler.service = service = Service(f"http://127.0.0.1:{server.server_address[1]}")  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield service
        server.shutdown()
        thread.join()


@pytest.fixture
def service() -> Iterator[Service]:
    with running_service() as service:
        yield service


@pytest.fixture
def exchange() -> Iterator[weir.Service]:
    with limited_service() as service:
        yield service


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    if not chromium():
        pytest.skip("no Chromium on this machine; scripts/setup.sh test-all installs it")
    browser = Browser(tmp_path_factory.mktemp("chromium"))
    yield browser
    browser.close()


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the documentation's site."""
    return site_built_once(tmp_path_factory)


@pytest.fixture(scope="session")
def site_address(site: Path) -> Iterator[str]:
    """Address of the documentation's site."""
    with served(site) as address:
        yield address


@pytest.fixture(params=LIBRARIES)
def library(request: pytest.FixtureRequest) -> Any:
    """Each library of transports."""
    return request.param


@pytest.fixture(params=LOOPS)
def loop(request: pytest.FixtureRequest) -> Any:
    """Each way to call them."""
    return request.param
