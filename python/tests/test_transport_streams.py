"""Bodies that stream through transports: memory, back-pressure, and what is never sent twice."""

import asyncio
import itertools
import platform
import threading
import warnings
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import httpx
import httpx2
import pytest
import uvloop
from conftest import wait_for
from programs import child
from raw_service import Pieces, raw_service, response
from transport_calls import Calls, failing

import weir
import weir.httpx
import weir.httpx2

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.fixture(params=[pytest.param(httpx2, id="httpx2"), pytest.param(httpx, id="httpx")])
def library(request: pytest.FixtureRequest) -> Any:
    """Each library."""
    return request.param


def transport(library: Any, **options: Any) -> Any:
    """A blocking transport."""
    return getattr(weir, library.__name__).Transport(**options)


def chunk(data: bytes) -> bytes:
    """A chunk of a chunked body."""
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


MEMORY = """
import resource, sys
import {library} as library, weir
import weir.{library} as transports

SIZE, PIECE = 1 << 26, bytes(1 << 16)

def upload():
    for _ in range(SIZE // len(PIECE)):
        yield PIECE

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

with library.Client(transport=transports.Transport(), timeout=60) as client:
    client.get({url!r} + "/static?bytes=100000")
    client.post({url!r} + "/echo", content=iter([b"a"] * 100))
    before = peak()
    got = 0
    with client.stream("GET", f"{url}/static?bytes={{SIZE}}") as response:
        for piece in response.iter_raw():
            got += len(piece)
    assert got == SIZE, got
    assert peak() - before < 16_000, ("download", peak() - before)
    sent = client.post({url!r} + "/validate", content=upload())
    assert peak() - before < 16_000, ("upload", peak() - before)
    got = 0
    with client.stream("POST", {url!r} + "/echo", content=upload()) as response:
        for piece in response.iter_raw():
            got += len(piece)
    assert got == SIZE, got
    assert peak() - before < 16_000, ("both", peak() - before)
"""


def test_memory_is_constant_both_ways(library: Any) -> None:
    with weir.serve("httpbin", max_body=1 << 26) as service:
        done = child(MEMORY.format(library=library.__name__, url=service.url), warn="ignore")
    assert done.returncode == 0, done.stderr


FAULTS = """
import resource
import {library} as library
import weir.{library} as transports

SIZE, CALLS = 1 << 20, 40

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

with library.Client(transport=transports.Transport(), timeout=60) as client:
    def read():
        with client.stream("GET", f"{url}/static?bytes={{SIZE}}") as response:
            assert len(b"".join(response.iter_raw())) == SIZE

    for _ in range(10):
        read()
    before = faults()
    for _ in range(CALLS):
        read()
    # Of memory that the system gets back, 200 to 500 for each body.
    assert faults() - before < 50 * CALLS, faults() - before
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="it is glibc's allocator that gives memory back")
def test_bodies_are_read_into_memory_that_the_process_has(library: Any) -> None:
    with weir.serve("httpbin") as service:
        done = child(FAULTS.format(library=library.__name__, url=service.url), warn="ignore")
    assert done.returncode == 0, done.stderr


def test_a_reader_that_stops_stops_the_server(library: Any) -> None:
    sent = itertools.count()
    piece = chunk(bytes(1 << 16))

    def respond(head: str) -> Iterator[bytes]:
        if "/endless" not in head:
            yield response(b"ok")
            return
        yield CHUNKED
        while True:
            next(sent)
            yield piece

    with (
        raw_service(respond) as service,
        library.Client(transport=transport(library)) as client,
        client.stream("GET", service.url + "/endless") as got,
    ):
        next(got.iter_raw())
        for _ in range(200):
            client.get(service.url)
        # What the kernel's buffers hold, and 512 KiB.
        assert next(sent) < 400


def test_events_arrive_one_by_one(library: Any) -> None:
    read = threading.Semaphore(0)

    def respond(_: str) -> Iterator[bytes]:
        yield CHUNKED
        for number in range(20):
            yield chunk(f"data: {number}\n\n".encode())
            # The next one is sent when this one was read.
            assert read.acquire(timeout=30)
        yield b"0\r\nX-Count: 20\r\n\r\n"

    with raw_service(respond) as service:
        with (
            library.Client(transport=transport(library)) as client,
            client.stream("GET", service.url) as got,
        ):
            lines = []
            for line in got.iter_lines():
                if line:
                    lines.append(line)
                    read.release()
            assert got.extensions["weir"].trailers == [(b"x-count", b"20")]
        assert lines == [f"data: {number}" for number in range(20)]

        async def awaited() -> list[str]:
            lines = []
            options = getattr(weir, library.__name__).AsyncTransport()
            async with library.AsyncClient(transport=options) as client, client.stream("GET", service.url) as got:
                async for line in got.aiter_lines():
                    if line:
                        lines.append(line)
                        read.release()
            return lines

        for runner in (asyncio.run, uvloop.run):
            assert runner(awaited()) == lines


def test_a_response_may_be_read_by_other_threads(library: Any) -> None:
    def respond(_: str) -> Iterator[bytes]:
        yield CHUNKED
        for _number in range(5):
            yield chunk(bytes(100_000))
        yield b"0\r\n\r\n"

    with (
        raw_service(respond) as service,
        library.Client(transport=transport(library)) as client,
        client.stream("GET", service.url) as got,
    ):
        pieces = got.iter_raw()
        sizes: list[int] = []
        end = object()
        while not sizes or sizes[-1]:
            reader = threading.Thread(target=lambda: sizes.append(len(next(pieces, b""))))
            reader.start()
            reader.join()
        assert sum(sizes) == 500_000
        assert next(pieces, end) is end


def test_a_stream_that_has_begun_is_neither_retried_nor_hedged(library: Any) -> None:
    more = threading.Event()

    def respond(head: str) -> Iterator[bytes]:
        yield CHUNKED
        yield chunk(b"first")
        if "/cut" in head:
            raise OSError
        assert more.wait(30)
        yield chunk(b"last")
        yield b"0\r\n\r\n"

    options = {"retries": 3, "hedge": weir.Hedge(after=0.02, attempts=2), "budget": None}
    with raw_service(respond) as service, library.Client(transport=transport(library, **options)) as client:
        with client.stream("GET", service.url) as got:
            pieces = got.iter_raw()
            assert next(pieces) == b"first"
            # Ten times the delay of the hedge.
            with raw_service(lambda _: [response(b"ok")]) as other:
                for _ in range(20):
                    client.get(other.url)
            more.set()
            assert list(pieces) == [b"last"]
        assert len(service.heads) == 1
        with pytest.raises(library.RemoteProtocolError):
            client.get(service.url + "/cut")
        assert len(service.heads) == 2


def test_a_hedge_counts_to_the_first_byte(library: Any) -> None:
    turn = itertools.count()
    never = threading.Event()

    def respond(_: str) -> Iterator[bytes]:
        yield CHUNKED
        if next(turn) == 0:
            never.wait(20)
        yield chunk(b"hello")
        yield b"0\r\n\r\n"

    with raw_service(respond) as service:
        hedged = Calls(library, "blocking", hedge=weir.Hedge(after=0.05))
        got = hedged.request("GET", service.url)
        assert (got.text, len(service.heads)) == ("hello", 2)
        assert got.extensions["weir"].won.number == 2
        never.set()


def test_a_body_that_cannot_be_sent_again_has_one_attempt(library: Any) -> None:
    with raw_service(failing(99)) as service, warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        for methods, notes in (("safe", 0), ("idempotent", 1)):
            with library.Client(transport=transport(library, retries=2, retry_methods=methods)) as client:
                got = [client.put(service.url, content=iter([b"a", b"b"])) for _ in range(3)]
            assert [len(one.extensions["weir"].attempts) for one in got] == [1, 1, 1]
            # Once, and not where the method alone allows one attempt.
            assert ["cannot be sent again" in str(one.message) for one in warned] == [True] * notes
            assert "its body was a stream" in str(got[0].extensions["weir"].not_sent)
        # A short one of known length is read before it is sent.
        options = {"retries": 2, "retry_methods": "all"}
        with warnings.catch_warnings(), library.Client(transport=transport(library, **options)) as other:
            warnings.simplefilter("error")
            sent = other.post(service.url, files={"file": ("name", b"text")})
        assert len(sent.extensions["weir"].attempts) == 3


def test_a_body_that_breaks_off_breaks_the_call(library: Any) -> None:
    def pieces() -> Iterator[bytes]:
        yield b"begin"
        wait_for(lambda: len(service.heads) == 1)
        raise ZeroDivisionError

    async def awaited_pieces() -> AsyncIterator[bytes]:
        yield b"begin"
        while len(service.heads) < 2:
            await asyncio.sleep(0.001)
        raise ZeroDivisionError

    async def call(url: str) -> None:
        options = getattr(weir, library.__name__).AsyncTransport()
        async with library.AsyncClient(transport=options) as client:
            await client.post(url, content=awaited_pieces())

    with raw_service(lambda _: []) as service:
        with library.Client(transport=transport(library)) as client, pytest.raises(ZeroDivisionError):
            client.post(service.url, content=pieces())
        with pytest.raises(ZeroDivisionError):
            asyncio.run(call(service.url))
        wait_for(lambda: len(service.sent) == 2)


def test_a_request_goes_on_while_its_response_is_read(library: Any) -> None:
    with weir.serve("httpbin", max_body=1 << 26) as service:
        pieces = [bytes([number % 251]) * 100_000 for number in range(100)]
        with (
            library.Client(transport=transport(library)) as client,
            client.stream("POST", service.url + "/echo", content=iter(pieces)) as got,
        ):
            assert b"".join(got.iter_raw()) == b"".join(pieces)

        async def chunks() -> AsyncIterator[bytes]:
            for piece in pieces:
                yield piece

        async def call() -> bytes:
            options = getattr(weir, library.__name__).AsyncTransport()
            async with library.AsyncClient(transport=options) as client:
                got = await client.post(service.url + "/echo", content=chunks())
                return bytes(got.content)

        assert asyncio.run(call()) == b"".join(pieces)


def held(entered: threading.Semaphore) -> Callable[[str], Pieces]:
    """Respond with the beginning of a body, and wait for the client to disconnect."""

    def respond(_: str) -> Iterator[bytes]:
        entered.release()
        yield CHUNKED
        while True:
            yield chunk(bytes(1 << 16))

    return respond


def test_a_cancelled_call_gives_its_connection_back(library: Any) -> None:
    entered = threading.Semaphore(0)

    async def cancelled(url: str) -> None:
        options = getattr(weir, library.__name__).AsyncTransport(hedge=weir.Hedge(after=0.01, attempts=2), budget=None)
        async with library.AsyncClient(transport=options) as client:
            for _ in range(10):
                task = asyncio.create_task(client.get(url))
                while not entered.acquire(blocking=False):
                    await asyncio.sleep(0)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task

    with raw_service(held(entered)) as service:
        asyncio.run(cancelled(service.url))
        # Each connection, those of hedges too, was closed.
        wait_for(lambda: len(service.sent) == len(service.heads))
        with library.Client(transport=transport(library)) as client, client.stream("GET", service.url) as got:
            next(got.iter_raw())
        wait_for(lambda: len(service.sent) == len(service.heads))


def test_a_rule_on_the_body_has_it_read_whole(library: Any) -> None:
    turn = itertools.count()

    def respond(_: str) -> Pieces:
        return [CHUNKED, chunk(b"not json" if next(turn) == 0 else b'{"a": 1}'), b"0\r\n\r\n"]

    with raw_service(respond) as service:
        ruled = Calls(library, "blocking", retries=weir.Retry(1, on=("body",)), success=weir.Success(json=True))
        got = ruled.request("GET", service.url)
    assert (got.json(), [attempt.outcome for attempt in got.extensions["weir"].attempts]) == ({"a": 1}, ["body", "won"])


def test_a_maximum_holds_for_streams(library: Any) -> None:
    entered = threading.Semaphore(0)
    with raw_service(held(entered)) as service:
        bounded = transport(library, max_response=1_000_000)
        with library.Client(transport=bounded) as client, pytest.raises(library.ReadError, match="1000000 bytes"):
            client.get(service.url)
