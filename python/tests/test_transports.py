"""Transports of httpx2 and httpx: what they return is what the library's own return, and what they add."""

import asyncio
import gc
import itertools
import logging
import os
import socket
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import anyio
import httpx
import httpx2
import pytest
from conftest import wait_for
from programs import child
from raw_service import Pieces, RawService, raw_service, response

import weir
import weir.httpx
import weir.httpx2

LIBRARIES = [pytest.param(httpx2, id="httpx2"), pytest.param(httpx, id="httpx")]
LOOPS = ["blocking", "asyncio", "trio"]


class Calls:
    """Calls of a library by a transport, in one of the ways that it has."""

    def __init__(self, library: Any, loop: str, **options: Any) -> None:
        self.library, self.loop, self.options = library, loop, options
        self.module = getattr(weir, library.__name__)

    def request(self, method: str, url: str, *, own: bool = False, **arguments: Any) -> Any:
        """Make one call with a client of its own, and return its response, or raise; `own` is the library's transport."""
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


@pytest.fixture(params=LIBRARIES)
def library(request: pytest.FixtureRequest) -> Any:
    """Each library."""
    return request.param


@pytest.fixture(params=LOOPS)
def loop(request: pytest.FixtureRequest) -> Any:
    """Each way to call."""
    return request.param


def outcome(call: Callable[[], Any]) -> Any:
    """What a caller sees of a call: the response, or the exception with all its classes."""
    try:
        got = call()
    except Exception as error:  # noqa: BLE001  all of them are compared
        return type(error).__mro__, getattr(error, "request", None) is not None
    dated = [(name, value) for name, value in got.headers.raw if name.lower() != b"date"]
    return got.status_code, got.reason_phrase, dated, got.content, got.http_version, str(got.url), got.is_closed


ODD: dict[str, bytes] = {
    "order and case": b"HTTP/1.1 200 Fine\r\nX-B: 1\r\nx-a: 2\r\nX-B: 3\r\nContent-Length: 2\r\nSet-Cookie: a=b\r\n\r\nok",
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


def test_two_hundred_requests_have_the_same_outcome(library: Any) -> None:
    transport = getattr(weir, library.__name__).Transport()
    with weir.serve("httpbin") as service, library.Client() as own, library.Client(transport=transport) as ours:
        requests = requests_of(service.url)
        assert len(requests) == 198
        for method, url, shape in requests:
            both = [outcome(lambda client=client: client.request(method, url, **shape)) for client in (own, ours)]  # type: ignore[misc]  # noqa: B023
            assert both[0] == both[1], (method, url, shape)


@pytest.mark.parametrize("loop", ["asyncio", "trio"])
def test_awaited_requests_have_the_same_outcome(library: Any, loop: str) -> None:
    async def compare(url: str) -> None:
        transport = getattr(weir, library.__name__).AsyncTransport()
        async with library.AsyncClient() as own, library.AsyncClient(transport=transport) as ours:
            for method, path, shape in requests_of(url)[::5]:
                both = []
                for client in (own, ours):
                    got = await client.request(method, path, **shape)
                    both.append(outcome(lambda got=got: got))  # type: ignore[misc]
                assert both[0] == both[1], (method, path, shape)

    with weir.serve("httpbin") as service:
        anyio.run(compare, service.url, backend=loop)


# httpcore does not close its generator.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("kind", [*ODD, *BROKEN])
def test_odd_and_broken_responses_have_the_same_outcome(library: Any, loop: str, kind: str) -> None:
    text = (ODD | BROKEN)[kind]
    with raw_service(closing(text)) as service:
        calls = Calls(library, loop)
        own, ours = [outcome(lambda own=own: calls.request("GET", service.url, own=own)) for own in (True, False)]  # type: ignore[misc]
    assert ours == own


def test_requests_that_cannot_be_sent_fail_as_before(library: Any, loop: str) -> None:
    calls = Calls(library, loop)
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        refused = f"http://127.0.0.1:{unused.getsockname()[1]}/"
        for url, arguments in (
            (refused, {}),
            ("http://name.invalid/", {}),
            ("ftp://127.0.0.1/", {}),
            ("http:///path", {}),
        ):
            both = [outcome(lambda own=own: calls.request("GET", url, own=own, **arguments)) for own in (True, False)]  # type: ignore[misc]  # noqa: B023
            assert both[0] == both[1], (url, arguments)


@pytest.mark.parametrize("headers", [{"X-A": "b\r\nX-C: d"}, {"X A": "b"}, {"X-A": "b\0"}])
def test_headers_that_would_be_others_are_rejected(library: Any, loop: str, headers: dict[str, str]) -> None:
    with raw_service(lambda _: [response(b"ok")]) as service:
        with pytest.raises(library.LocalProtocolError):
            Calls(library, loop).request("GET", service.url, headers=headers)
        assert not service.heads


def silent(_: str) -> Iterator[bytes]:
    """Respond with nothing, and keep the connection."""
    time.sleep(20)
    yield b""


def stalled(_: str) -> Iterator[bytes]:
    """Respond with the beginning of a body, and keep the connection."""
    yield b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\nabc"
    time.sleep(20)


@pytest.mark.parametrize("respond", [silent, stalled])
def test_the_librarys_timeouts_hold(library: Any, loop: str, respond: Callable[[str], Pieces]) -> None:
    with raw_service(respond) as service:
        calls = Calls(library, loop)
        with pytest.raises(library.ReadTimeout) as raised:
            calls.request("GET", service.url, timeout=library.Timeout(60, read=0.2))
    assert raised.value.request.url.host == "127.0.0.1"


def test_no_permit_in_time_is_a_pool_timeout(library: Any) -> None:
    with raw_service(silent) as service:
        transport = getattr(weir, library.__name__).Transport(limit=1)
        with library.Client(transport=transport, timeout=library.Timeout(60, pool=0.1)) as client:
            first = threading.Thread(target=lambda: outcome(lambda: client.get(service.url, timeout=3)))
            first.start()
            wait_for(lambda: bool(service.heads))
            with pytest.raises(library.PoolTimeout):
                client.get(service.url)
            transport.close()


def test_a_deadline_ends_the_whole_call(library: Any, loop: str) -> None:
    for respond in (silent, stalled):
        with raw_service(respond) as service:
            calls = Calls(library, loop, deadline=0.2, retries=2)
            with pytest.raises(library.ReadTimeout) as raised:
                calls.request("GET", service.url)
    first = Calls(library, loop, deadline=0.2)
    with raw_service(silent) as service, pytest.raises(library.TimeoutException) as raised:
        first.request("GET", service.url)
    cause = raised.value.__cause__
    assert isinstance(cause, weir.DeadlineExceeded)
    assert [attempt.outcome for attempt in cause.attempts] == ["cancelled"]


def failing(number: int, status: str = "503 Busy", extra: str = "") -> Callable[[str], Pieces]:
    """Fail the first requests."""
    count = itertools.count()

    def respond(_: str) -> Pieces:
        if next(count) < number:
            return [f"HTTP/1.1 {status}\r\n{extra}Content-Length: 0\r\n\r\n".encode()]
        return [response(b"ok")]

    return respond


def test_failures_are_retried_and_the_attempts_are_on_the_response(
    library: Any, loop: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "weir.transport")
    with raw_service(failing(2)) as service:
        got = Calls(library, loop, retries=2).request("GET", service.url + "/?key=secret")
    log = got.extensions["weir"]
    assert (got.status_code, got.text) == (200, "ok")
    assert [attempt.outcome for attempt in log.attempts] == ["status", "status", "won"]
    assert log.won is log.attempts[2]
    assert (log.not_sent, len(service.heads)) == (None, 3)
    (line,) = [record.getMessage() for record in caplog.records if record.name == "weir.transport"]
    assert "status 503" in line
    assert "secret" not in line


def test_the_last_status_is_returned_as_before(library: Any, loop: str) -> None:
    with raw_service(failing(9)) as service:
        calls = Calls(library, loop, retries=1, success=weir.Success(status=200))
        got = calls.request("GET", service.url)
    assert (got.status_code, len(service.heads)) == (503, 2)


def test_a_post_is_sent_once_unless_that_is_wanted(library: Any, loop: str) -> None:
    with raw_service(failing(9)) as service:
        assert Calls(library, loop, retries=2).request("POST", service.url, content=b"x").status_code == 503
        assert len(service.heads) == 1
        wanted = Calls(library, loop, retries=2, retry_methods="all")
        assert wanted.request("POST", service.url, content=b"x").status_code == 503
        assert len(service.heads) == 4


def test_retry_after_is_never_undercut(library: Any) -> None:
    with raw_service(failing(1, "429 Slow down", "Retry-After: 1\r\n")) as service:
        began = time.monotonic()
        got = Calls(library, "blocking", retries=1).request("GET", service.url)
        assert (got.status_code, len(service.heads)) == (200, 2)
        assert time.monotonic() - began >= 1
        # And not waited for in vain.
    with raw_service(failing(1, "429 Slow down", "Retry-After: 60\r\n")) as service:
        got = Calls(library, "blocking", retries=1, deadline=30).request("GET", service.url)
        assert (got.status_code, len(service.heads)) == (429, 1)


def test_a_spent_budget_stops_no_first_attempt(library: Any) -> None:
    with raw_service(failing(99)) as service:
        budget = weir.Budget(fraction=0, min_per_s=0.1, window=10)
        transport = getattr(weir, library.__name__).Transport(retries=1, budget=budget)
        with library.Client(transport=transport) as client:
            logs = [client.get(service.url).extensions["weir"] for _ in range(4)]
    assert [len(log.attempts) for log in logs] == [2, 1, 1, 1]
    assert "retry budget" in logs[1].not_sent


def test_concurrent_calls_have_attempts_of_their_own(library: Any) -> None:
    def respond(head: str) -> Pieces:
        return [response(b"ok")] if "/good" in head else [b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"]

    async def calls(url: str) -> list[Any]:
        transport = getattr(weir, library.__name__).AsyncTransport(retries=2, budget=None)
        async with library.AsyncClient(transport=transport) as client:
            paths = ["/good", "/bad"] * 20
            return await asyncio.gather(*(client.get(url + path) for path in paths))

    with raw_service(respond) as service:
        got = asyncio.run(calls(service.url))
    assert [len(one.extensions["weir"].attempts) for one in got] == [1, 3] * 20


def test_a_hedge_wins_and_the_other_attempt_is_cancelled(library: Any, loop: str) -> None:
    first = itertools.count()

    def respond(head: str) -> Pieces:
        return silent(head) if next(first) == 0 else [response(b"quick")]

    with raw_service(respond) as service:
        got = Calls(library, loop, hedge=weir.Hedge(after=0.05)).request("GET", service.url)
    assert got.text == "quick"
    assert [attempt.outcome for attempt in got.extensions["weir"].attempts] == ["cancelled", "won"]


def test_proxies_of_the_environment_are_named_once(library: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    with raw_service(lambda _: [response(b"ok")]) as service:
        with library.Client(transport=getattr(weir, library.__name__).Transport()) as client:
            with pytest.warns(UserWarning, match="http_proxy is set, and has no effect"):
                client.get(service.url)
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                client.get(service.url)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"limit": 0}, "limit: 0 is out of range"),
        ({"limit": "auto"}, "limit: 'auto' is unknown"),
        ({"proxy": "http://127.0.0.1:1"}, "this transport connects directly"),
        ({"http1": False}, "cannot be switched off"),
        ({"local_address": "127.0.0.2"}, "leave it out"),
        ({"verify": "/nowhere.pem"}, "verify /nowhere.pem"),
        ({"deadline": 0}, "deadline: invalid time 0"),
    ],
)
def test_options_that_have_no_effect_are_errors(library: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(weir.UsageError, match=message):
        getattr(weir, library.__name__).Transport(**options)


def test_limits_of_the_library_hold(library: Any) -> None:
    limits = library.Limits(max_connections=1, max_keepalive_connections=0, keepalive_expiry=1)
    with raw_service(lambda _: [response(b"ok")]) as service:
        with library.Client(transport=getattr(weir, library.__name__).Transport(limits=limits)) as client:
            for _ in range(3):
                client.get(service.url)
            # Without idle connections each call has its own.
            wait_for(lambda: len(service.sent) >= 3)


def test_a_child_of_a_fork_makes_its_own_calls(library: Any) -> None:
    with raw_service(lambda _: [response(b"ok")]) as service:
        with library.Client(transport=getattr(weir, library.__name__).Transport()) as client:
            client.get(service.url)
            with warnings.catch_warnings():
                # There are threads: that is what this is about.
                warnings.simplefilter("ignore", DeprecationWarning)
                pid = os.fork()
            if pid == 0:
                os._exit(0 if client.get(service.url).text == "ok" else 1)
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
            assert client.get(service.url).text == "ok"


def test_nothing_is_kept_without_the_garbage_collector(library: Any) -> None:
    program = f"""
import gc, os, weir.{library.__name__} as transports, {library.__name__} as library, sys
gc.disable()
def files():
    return len(os.listdir("/proc/self/fd"))
with library.Client(transport=transports.Transport()) as client:
    for _ in range(50):
        client.get(sys.argv[1])
    before = files()
    for _ in range(300):
        client.get(sys.argv[1])
        with client.stream("GET", sys.argv[1] + "/static"):
            pass
    assert files() <= before + 4, (before, files())
"""
    with weir.serve("httpbin") as service:
        child(program.replace("sys.argv[1]", repr(service.url)))


def test_without_the_library_nothing_is_imported() -> None:
    child(
        "import sys, weir; weir.Hedge; weir.Client\n"
        "assert not {'httpx', 'httpx2', 'requests', 'aiohttp'} & sys.modules.keys()\n"
        "assert weir.httpx2.Transport is __import__('weir.httpx2').httpx2.Transport"
    )
    gc.collect()


def seen_by(service: RawService) -> list[str]:
    """Header lines of the last request."""
    return service.heads[-1].split("\r\n")[1:-2]


def test_headers_reach_the_server_as_given(library: Any) -> None:
    with raw_service(lambda _: [response(b"ok")]) as service:
        with library.Client(transport=getattr(weir, library.__name__).Transport()) as client:
            client.get(service.url, headers={"X-Mixed-Case": "Äö".encode("latin-1"), "x-lower": "1"})
        lines = seen_by(service)
    assert lines[0].startswith("Host: 127.0.0.1:")
    assert "X-Mixed-Case: Äö" in lines
    assert "x-lower: 1" in lines
