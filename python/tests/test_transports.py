"""Transports of httpx2 and httpx: what they return is what the library's own return, and what they add."""

import os
import socket
import threading
import warnings
from collections.abc import Callable
from typing import Any

import anyio
import pytest
from conftest import wait_for
from programs import child
from raw_service import Pieces, RawService, raw_service, response
from transport_calls import BROKEN, ODD, Calls, closing, outcome, requests_of, silent, stalled

import weir
import weir.httpx
import weir.httpx2


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
        closed = f"http://127.0.0.1:{unused.getsockname()[1]}/"
        for url in (closed, "http://name.invalid/", "ftp://127.0.0.1/", "http:///path"):
            both = [outcome(lambda own=own: calls.request("GET", url, own=own)) for own in (True, False)]  # type: ignore[misc]  # noqa: B023
            assert both[0] == both[1], url


@pytest.mark.parametrize("headers", [{"X-A": "b\r\nX-C: d"}, {"X A": "b"}, {"X-A": "b\0"}])
def test_headers_that_would_be_others_are_rejected(library: Any, loop: str, headers: dict[str, str]) -> None:
    with raw_service(lambda _: [response(b"ok")]) as service:
        with pytest.raises(library.LocalProtocolError):
            Calls(library, loop).request("GET", service.url, headers=headers)
        assert not service.heads


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


def test_proxies_of_the_environment_are_named_once(library: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    transport = getattr(weir, library.__name__).Transport()
    with raw_service(lambda _: [response(b"ok")]) as service, library.Client(transport=transport) as client:
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
    transport = getattr(weir, library.__name__).Transport(limits=limits)
    with raw_service(lambda _: [response(b"ok")]) as service, library.Client(transport=transport) as client:
        for _ in range(3):
            client.get(service.url)
        # Without idle connections each call has its own.
        wait_for(lambda: len(service.sent) >= 3)


def test_a_child_of_a_fork_makes_its_own_calls(library: Any) -> None:
    transport = getattr(weir, library.__name__).Transport()
    with raw_service(lambda _: [response(b"ok")]) as service, library.Client(transport=transport) as client:
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
        done = child(program.replace("sys.argv[1]", repr(service.url)))
    assert done.returncode == 0, done.stderr


def test_without_the_library_nothing_is_imported() -> None:
    done = child(
        "import sys, weir; weir.Hedge; weir.Client\n"
        "assert not {'httpx', 'httpx2', 'requests', 'aiohttp'} & sys.modules.keys()\n"
        "assert weir.httpx2.Transport is __import__('weir.httpx2').httpx2.Transport"
    )
    assert done.returncode == 0, done.stderr


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
