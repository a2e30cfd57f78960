"""Bodies through transports at their edges: early responses, late pieces, a stream that is closed while it is read."""

import asyncio
import itertools
import socket
import ssl
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx
import httpx2
import pytest
import trio
import trustme
from conftest import wait_for
from http2_service import resetting_service
from raw_service import raw_service, response
from transport_calls import LOOPS, Calls, outcome, silent, stalled

import weir


@pytest.fixture(params=[pytest.param(httpx2, id="httpx2"), pytest.param(httpx, id="httpx")])
def library(request: pytest.FixtureRequest) -> Any:
    """Each library."""
    return request.param


@contextmanager
def early(
    text: bytes, *, pause_s: float = 0, limit: int = 10_000_000, ends: bool = False
) -> Iterator[tuple[str, list[int]]]:
    """Respond to the head of a request at once, and then count its body up to a limit, with pauses.

    With `ends` nothing more can come.
    """
    received: list[int] = []

    def serve(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection:
            head = b""
            while b"\r\n\r\n" not in head:
                head += connection.recv(65536)
            connection.sendall(text)
            if ends:
                connection.shutdown(socket.SHUT_WR)
            count = len(head.partition(b"\r\n\r\n")[2])
            while count < limit and (more := len(connection.recv(1 << 20))):
                count += more
                time.sleep(pause_s)
            received.append(count)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, args=(listener,), daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/", received


@pytest.mark.parametrize("is_stream", [False, True])
@pytest.mark.parametrize(
    "text",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        b"HTTP/1.1 204 No Content\r\n\r\n",
    ],
)
def test_a_response_that_comes_early_and_whole_does_not_cut_its_request(
    library: Any, text: bytes, is_stream: bool
) -> None:
    def pieces() -> Iterator[bytes]:
        for _ in range(100):
            yield bytes(100_000)

    with early(text) as (url, received):
        got = Calls(library, "blocking").request("POST", url, content=pieces() if is_stream else bytes(10_000_000))
        assert got.is_success
        wait_for(lambda: bool(received))
        assert received[0] >= 10_000_000


@pytest.mark.parametrize("loop", LOOPS)
def test_a_whole_response_that_comes_early_waits_for_a_request_that_is_still_taken(library: Any, loop: str) -> None:
    # Longer than what is read before a call has its outcome.
    pieces = b"".join(b"%x\r\n%s\r\n" % (size, bytes(size)) for size in (65_536, 500_000))
    whole = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + pieces + b"0\r\n\r\n"
    # Taken in 40 parts of 1 MB, with pauses that are longer than the timeout of reads together.
    with early(whole, pause_s=0.03, limit=40_000_000) as (url, received):
        timeout = library.Timeout(20, read=0.3)
        got = Calls(library, loop).request("POST", url, content=bytes(40_000_000), timeout=timeout)
        assert (got.status_code, len(got.content)) == (200, 565_536)
        wait_for(lambda: bool(received))
        assert received[0] >= 40_000_000


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("size", [5, 500_000])
def test_a_request_that_is_not_taken_behind_a_whole_response_has_the_timeout_of_writes(
    library: Any, loop: str, size: int
) -> None:
    whole = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (size, bytes(size))
    calls, timeout = Calls(library, loop), library.Timeout(20, read=0.1, write=0.4)
    with early(whole, pause_s=20) as (url, _), pytest.raises(library.WriteTimeout):
        calls.request("POST", url, content=bytes(40_000_000), timeout=timeout)


@pytest.mark.parametrize("loop", LOOPS)
def test_a_response_that_is_cut_while_its_request_is_sent_is_that_failure(library: Any, loop: str) -> None:
    cut = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nok"
    calls, timeout = Calls(library, loop), library.Timeout(20, read=0.3)
    cuts = early(cut, pause_s=0.03, limit=40_000_000, ends=True)
    with cuts as (url, _), pytest.raises(library.RemoteProtocolError, match="without sending complete message body"):
        calls.request("POST", url, content=bytes(40_000_000), timeout=timeout)


@pytest.mark.parametrize("loop", ["asyncio", "trio"])
def test_a_deadline_passes_while_the_body_of_the_request_waits(library: Any, loop: str) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield b"first"
        await anyio.sleep(3600)
        yield b"last"

    with raw_service(silent) as service, pytest.raises(library.ReadTimeout) as raised:
        Calls(library, loop, deadline=0.2).request("POST", service.url, content=pieces())
    assert isinstance(raised.value.__cause__, weir.DeadlineExceeded)


def test_a_stream_that_is_closed_ends_for_its_reader(library: Any) -> None:
    async def main(url: str) -> None:
        transport = getattr(weir, library.__name__).AsyncTransport()
        async with library.AsyncClient(transport=transport) as client:
            response = await client.send(client.build_request("GET", url), stream=True)
            pieces = response.aiter_raw()
            assert await anext(pieces) == b"abc"
            reader = asyncio.ensure_future(anext(pieces))
            await asyncio.sleep(0)
            await response.aclose()
            with pytest.raises(library.ReadError):
                await asyncio.wait_for(reader, 20)

    with raw_service(stalled) as service:
        asyncio.run(main(service.url))


def test_timeouts_that_differ_share_connections(library: Any) -> None:
    with raw_service(lambda _: [response(b"ok")]) as service:
        transport = getattr(weir, library.__name__).Transport()
        with library.Client(transport=transport) as client:
            for k in range(20):
                client.get(service.url, timeout=20 + k / 1000)
    assert service.connections == 1


@pytest.mark.parametrize("loop", LOOPS)
def test_a_connect_timeout_holds_for_its_call(library: Any, loop: str) -> None:
    # A listener that accepts nothing: TLS never begins.
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"https://127.0.0.1:{listener.getsockname()[1]}/"
        for options in ({}, {"http2": True}):
            with pytest.raises(library.ConnectTimeout):
                Calls(library, loop, **options).request("GET", url, timeout=library.Timeout(60, connect=0.1))


def test_the_callers_remaining_time_is_replaced_by_the_calls(library: Any) -> None:
    with raw_service(lambda _: [response(b"ok")]) as service:
        headers = {"X-Envoy-Expected-RQ-Timeout-Ms": "999999"}
        Calls(library, "blocking", deadline=9).request("GET", service.url, headers=headers)
        Calls(library, "blocking").request("GET", service.url, headers=headers)
        with weir.Client(deadline=9) as client:
            client.get(service.url, headers=headers)
    name = "x-envoy-expected-rq-timeout-ms: "
    values = [
        [line[len(name) :] for line in head.lower().split("\r\n") if line.startswith(name)] for head in service.heads
    ]
    assert [len(found) for found in values] == [1, 1, 1]
    assert max(int(values[0][0]), int(values[2][0])) <= 9000
    assert values[1] == ["999999"]


PIECES: list[Callable[[], list[Any]]] = [lambda: [bytearray(b"ab"), memoryview(b"c")], lambda: [b"", b"abc", b""]]


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("pieces", PIECES)
def test_pieces_are_any_bytes(library: Any, loop: str, pieces: Callable[[], list[Any]]) -> None:
    def blocking() -> Iterator[Any]:
        yield from pieces()

    async def awaited() -> AsyncIterator[Any]:
        for piece in pieces():
            yield piece

    with weir.serve("httpbin") as service:
        content = blocking() if loop == "blocking" else awaited()
        assert Calls(library, loop).request("POST", service.url + "/echo", content=content).content == b"abc"


def test_a_target_that_cannot_be_sent_is_the_callers_error(library: Any) -> None:
    with raw_service(lambda _: [response(b"ok")]) as service:
        for target in (b"/\xff", b"/a b", b"/a\r\nX-B: c", b""):
            with pytest.raises(library.LocalProtocolError):
                Calls(library, "blocking").request("GET", service.url, extensions={"target": target})
        assert not service.heads


def test_streams_that_wait_hold_none_of_trios_threads(library: Any) -> None:
    def respond(head: str) -> Iterator[bytes]:
        return stalled(head) if "/stream" in head else iter([response(b"ok")])

    async def main(url: str) -> None:
        transport = getattr(weir, library.__name__).AsyncTransport()
        async with library.AsyncClient(transport=transport, timeout=30) as client, trio.open_nursery() as nursery:

            async def read() -> None:
                async with client.stream("GET", url + "/stream") as got:
                    async for _ in got.aiter_raw():
                        started.append(True)

            started: list[bool] = []
            # trio has 40 threads.
            for _ in range(45):
                nursery.start_soon(read)
            with trio.fail_after(15):
                while len(started) < 45:
                    await trio.sleep(0.002)
                assert (await client.get(url)).text == "ok"
            nursery.cancel_scope.cancel()

    with raw_service(respond) as service:
        trio.run(main, service.url)


def test_a_stream_that_is_reset_is_the_servers_protocol_error(library: Any, tmp_path: Path) -> None:
    authority, path = trustme.CA(), tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(path)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.set_alpn_protocols(["h2"])
    authority.issue_cert("127.0.0.1").configure_cert(tls)
    transport = getattr(weir, library.__name__).Transport(http2=True, verify=path)
    own = library.Client(http2=True, verify=ssl.create_default_context(cafile=path))
    with resetting_service(tls) as url:
        for client in (own, library.Client(transport=transport)):
            with client, pytest.raises(library.RemoteProtocolError):
                # The service resets every second stream.
                [client.get(url) for _ in range(2)]


def test_a_stream_that_is_not_read_frees_its_permit_at_the_deadline(library: Any) -> None:
    def respond(head: str) -> Iterator[bytes]:
        if "/large" not in head:
            yield response(b"ok")
            return
        yield b"HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n"
        yield from itertools.repeat(bytes(100_000), 1000)

    transport = getattr(weir, library.__name__).Transport(limit=1, deadline=0.3)
    with raw_service(respond) as service, library.Client(transport=transport, timeout=20) as client:
        unread = client.send(client.build_request("GET", service.url + "/large"), stream=True)
        wait_for(lambda: isinstance(outcome(lambda: client.get(service.url))[0], int))
        with pytest.raises(library.ReadTimeout):
            unread.read()
