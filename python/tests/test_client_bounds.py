"""Bounds of what servers may send to clients: bodies as received and decoded, heads, trailers, JSON, character sets."""

import asyncio
import gzip
import itertools
import json
import resource
import threading
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from programs import child
from raw_service import Pieces, raw_service, response

import weir

MIB = 1 << 20
CHUNK = b"10000\r\n" + bytes(1 << 16) + b"\r\n"


def endless(head: bytes) -> Iterator[bytes]:
    """Body without an end."""
    yield head
    yield from itertools.repeat(CHUNK)


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

ENDLESS: dict[str, Callable[[str], Pieces]] = {
    "chunked": lambda _: endless(CHUNKED),
    "until the connection closes": lambda _: endless(b"HTTP/1.1 200 OK\r\n\r\n"),
    "a huge length": lambda _: endless(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999\r\n\r\n"),
    "an error's page": lambda _: endless(b"HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\n\r\n"),
    "a failed attempt's page": lambda _: endless(b"HTTP/1.1 503 Busy\r\nTransfer-Encoding: chunked\r\n\r\n"),
    "one byte too many": lambda _: [response(bytes(MIB + 1))],
    "a compressed body": lambda _: endless(CHUNKED.replace(b"\r\n\r\n", b"\r\nContent-Encoding: gzip\r\n\r\n")),
}


@pytest.mark.parametrize("name", ENDLESS)
def test_a_response_above_the_maximum_raises_and_is_not_read_on(name: str) -> None:
    with raw_service(ENDLESS[name]) as service, weir.Client(max_response=MIB) as client:
        with pytest.raises(weir.ResponseTooLarge, match=r"longer than 1048576 bytes, max_response") as caught:
            client.get(service.url, timeout=60)
        assert service.ended.wait(60), "the connection is closed"
        # What was sent beyond the maximum is in buffers of sockets.
        assert service.sent[0] < 32 * MIB
        assert caught.value.response is None
        assert len(caught.value.attempts) == 1
        assert "longer than 1048576 bytes" in str(caught.value.attempts[0])


def test_a_response_of_the_maximum_is_whole_and_its_connection_is_used_again() -> None:
    with raw_service(lambda _: [response(bytes(MIB))]) as service, weir.Client(max_response=MIB) as client:
        for _ in range(3):
            assert len(client.get(service.url).content) == MIB
        assert (len(service.heads), service.ended.is_set()) == (3, True)


def test_the_maximum_is_an_option_of_calls_and_the_default_is_64_mib() -> None:
    with raw_service(lambda _: [response(bytes(2 * MIB))]) as service, weir.Client(max_response=MIB) as client:
        assert len(client.get(service.url, max_response=2 * MIB).content) == 2 * MIB
        assert len(client.get(service.url, max_response=None).content) == 2 * MIB
        with pytest.raises(weir.ResponseTooLarge):
            client.get(service.url)
    head = f"HTTP/1.1 200 OK\r\nContent-Length: {64 * MIB + 1}\r\n\r\n".encode()
    with raw_service(lambda _: endless(head)) as service, pytest.raises(weir.ResponseTooLarge, match="67108864"):
        weir.get(service.url)


@pytest.mark.parametrize("value", [0, -1])
def test_an_invalid_maximum_is_a_usage_error(value: int) -> None:
    with pytest.raises(weir.UsageError, match=f"max_response: {value} is out of range; give bytes"):
        weir.Client(max_response=value)
    with pytest.raises(TypeError, match="max_response"):
        weir.Client(max_response="1MiB")  # type: ignore[arg-type]


def test_hedged_copies_are_bounded_each_and_a_good_one_wins() -> None:
    numbers = itertools.count()

    def respond(_: str) -> Pieces:
        return endless(CHUNKED) if next(numbers) < 2 else [response(b"good")]

    hedge = weir.Hedge(after=None, attempts=2)
    with raw_service(respond) as service, weir.Client(max_response=MIB, hedge=hedge, budget=None) as client:
        found = client.get(service.url)
        assert found.content == b"good"
        assert "body" in {attempt.outcome for attempt in found.attempts}
    with raw_service(lambda _: endless(CHUNKED)) as service, weir.Client(max_response=MIB, budget=None) as client:
        with pytest.raises(weir.ResponseTooLarge) as caught:
            client.get(service.url, hedge=weir.Hedge(after=None, attempts=3))
        assert len(caught.value.attempts) == 4


def bomb(size: int) -> bytes:
    return gzip.compress(bytes(size), compresslevel=9)


def members(size: int) -> bytes:
    return b"".join(bomb(1 << 16) for _ in range(size >> 16))


def raw_deflate(size: int) -> bytes:
    made = zlib.compressobj(9, wbits=-15)
    return made.compress(bytes(size)) + made.flush()


BOMBS: dict[str, tuple[str, bytes]] = {
    "gzip": ("gzip", bomb(64 * MIB)),
    "x-gzip": ("x-gzip", bomb(64 * MIB)),
    "many members": ("gzip", members(16 * MIB)),
    "deflate": ("deflate", zlib.compress(bytes(64 * MIB), 9)),
    "raw deflate": ("deflate", raw_deflate(64 * MIB)),
    "gzip in gzip": ("gzip, gzip", gzip.compress(bomb(64 * MIB))),
    "deflate in gzip, and identity": ("deflate, identity, gzip", gzip.compress(zlib.compress(bytes(64 * MIB)))),
    "a large inner stage": ("deflate, gzip", bomb(64 * MIB)),
    "one byte too many": ("gzip", bomb(MIB + 1)),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_body_above_the_maximum_when_decoded_raises_within_little_memory(name: str) -> None:
    coding, body = BOMBS[name]
    with raw_service(lambda _: [response(body, f"Content-Encoding: {coding}")]) as service:
        found = weir.get(service.url, max_response=MIB)
    for read in (lambda: found.content, lambda: found.text, found.json):
        tracemalloc.start()
        with pytest.raises(weir.ResponseTooLarge, match="the decoded response is longer") as caught:
            read()
        assert tracemalloc.get_traced_memory()[1] < 8 * MIB
        tracemalloc.stop()
    assert caught.value.response is found
    assert found.headers["content-encoding"] == coding


@pytest.mark.parametrize(
    ("coding", "body", "words"),
    [
        (", ".join(["gzip"] * 6), b"x", "6 content codings; at most 5 are decoded"),
        (", ".join(["identity"] * 60 + ["gzip"]), b"x", "the body is not gzip"),
        ("gzip", gzip.compress(b"") * 70_000, "more than 65536 gzip members"),
        ("gzip", gzip.compress(bytes(100_000))[:-9], "the body is not gzip: incomplete stream"),
        ("deflate", b"\x78", "the body is not deflate"),
    ],
    ids=["codings", "identities", "members", "cut", "one byte"],
)
def test_other_bodies_that_cost_more_than_they_are_raise_a_decoding_error(coding: str, body: bytes, words: str) -> None:
    with raw_service(lambda _: [response(body, f"Content-Encoding: {coding}")]) as service:
        found = weir.get(service.url)
    with pytest.raises(weir.DecodingError, match=words):
        _ = found.content


@pytest.mark.parametrize(
    "plain", [b"", b"x", bytes(1 << 18), bytes(3 << 18), b"abc" * 700_001, bytes(range(256)) * 9000]
)
def test_bodies_of_any_length_are_decoded_whole(plain: bytes) -> None:
    raw = zlib.compressobj(wbits=-15)
    bodies = {
        "gzip": gzip.compress(plain),
        "x-gzip": gzip.compress(plain[:7]) + gzip.compress(plain[7:]) + bytes(1000),
        "deflate": zlib.compress(plain),
        "Deflate": raw.compress(plain) + raw.flush(),
        "deflate, gzip": gzip.compress(zlib.compress(plain)),
        "gzip, deflate,identity": zlib.compress(gzip.compress(plain, 1), 0),
        "br, gzip": gzip.compress(plain),
    }

    async def awaited(url: str, coding: str) -> bytes:
        async with weir.AsyncClient(base_url=url, max_response=max(len(plain), 1)) as client:
            return (await client.get("/" + coding.replace(" ", "-"), max_response=4 * MIB)).content

    for coding, body in bodies.items():
        with raw_service(lambda _, b=body, c=coding: [response(b, f"Content-Encoding: {c}")]) as service:  # type: ignore[misc]
            with weir.Client() as client:
                assert client.get(service.url).content == plain, coding
            assert asyncio.run(awaited(service.url, coding)) == plain, coding


def test_a_loop_goes_on_while_a_large_body_is_decoded() -> None:
    body = bomb(48 * MIB)
    with raw_service(lambda _: [response(body, "Content-Encoding: gzip")]) as service:

        async def main() -> tuple[weir.Response, set[int]]:
            turns = 0

            async def turn() -> None:
                nonlocal turns
                while True:
                    turns += 1
                    await asyncio.sleep(0)

            threads: set[int] = set()
            decode = weir.Response._decode

            def decoded_on(response: weir.Response, steps: Any, max_bytes: int | None = None) -> bool:
                before = turns
                ended = decode(response, steps, max_bytes)
                if turns > before:
                    # The loop went on meanwhile.
                    threads.add(threading.get_ident())
                return ended

            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(weir.Response, "_decode", decoded_on)
                turning = asyncio.create_task(turn())
                async with weir.AsyncClient() as client:
                    response = await client.get(service.url)
                turning.cancel()
            return response, threads

        found, threads = asyncio.run(main())
        assert threads
        assert threading.get_ident() not in threads
        assert found._content is not None, "it was decoded before"
        assert len(found.content) == 48 * MIB


def test_an_async_client_raises_for_a_bomb_when_its_content_is_read() -> None:
    with raw_service(lambda _: [response(bomb(64 * MIB), "Content-Encoding: gzip")]) as service:

        async def main() -> None:
            async with weir.AsyncClient(max_response=4 * MIB) as client:
                found = await client.get(service.url)
                assert found.status_code == 200
                for _ in range(2):
                    with pytest.raises(weir.ResponseTooLarge, match="the decoded response"):
                        _ = found.content

        asyncio.run(main())


def test_memory_stays_near_the_maximum_whatever_a_server_sends() -> None:
    most = 16
    program = """
import resource, sys, weir
client = weir.Client(max_response={most} * 2**20)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for path in ("/endless", "/bomb"):
    try:
        len(client.get({url!r} + path, timeout=60).content)
    except weir.ResponseTooLarge:
        print("too large")
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    body = bomb(256 * MIB)

    def respond(head: str) -> Pieces:
        return endless(CHUNKED) if "/endless" in head else [response(body, "Content-Encoding: gzip")]

    with raw_service(respond) as service:
        done = child(program.format(most=most, url=service.url))
    assert done.stderr == ""
    *ends, grown_kib = done.stdout.split("\n")[:-1]
    assert ends == ["too large"] * 2
    assert int(grown_kib) < 5 * most * 1024, grown_kib


HEADS: dict[str, Callable[[], Pieces]] = {
    "an endless head": lambda: itertools.chain(
        [b"HTTP/1.1 200 OK\r\n"], itertools.repeat(b"X-A: " + b"a" * 4000 + b"\r\n")
    ),
    "an endless line": lambda: itertools.chain([b"HTTP/1.1 200 OK\r\nX: "], itertools.repeat(b"a" * 8000)),
    "an endless status line": lambda: itertools.chain([b"HTTP/1.1 200 "], itertools.repeat(b"a" * 8000)),
    "many headers": lambda: [response(b"", *(f"X-{n}: 1" for n in range(3000)))],
    "endless interim responses": lambda: itertools.repeat(b"HTTP/1.1 103 Early\r\nLink: x\r\n\r\n" * 50),
    "an endless chunk line": lambda: itertools.chain([CHUNKED, b"5;"], itertools.repeat(b"a" * 8000)),
    "endless trailers": lambda: itertools.chain(
        [CHUNKED, b"0\r\n"], itertools.repeat(b"X-T: " + b"t" * 3000 + b"\r\n")
    ),
    "many trailers": lambda: [CHUNKED + b"0\r\n" + b"".join(b"a%d:1\r\n" % n for n in range(900)) + b"\r\n"],
}


@pytest.mark.parametrize("name", HEADS)
def test_heads_interim_responses_and_trailers_have_bounds(name: str) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with raw_service(lambda _: HEADS[name]()) as service, weir.Client() as client:
        with pytest.raises(weir.AllAttemptsFailed) as caught:
            client.get(service.url, timeout=60)
        assert [attempt.outcome for attempt in caught.value.attempts] == ["protocol"]
        assert len(str(caught.value)) < 1000
        assert service.ended.wait(60)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 * 1024


@pytest.mark.parametrize("charset", ["punycode", "idna", "unicode_escape", "raw_unicode_escape", "undefined", "zlib"])
def test_a_server_cannot_choose_a_codec_that_is_no_character_set(charset: str) -> None:
    body = b"a" * 300_000 + b"-\\x80" + "ü".encode()
    with raw_service(lambda _: [response(body, f"Content-Type: text/plain; charset={charset}")]) as service:
        found = weir.get(service.url)
        assert found.encoding == "utf-8"
        assert found.text == body.decode()


def test_json_that_is_nested_too_deep_is_a_json_error() -> None:
    for body in (b"[" * 500_000, b'{"a":' * 500_000, b"[" * 500_000 + b"]" * 500_000):
        with raw_service(lambda _, b=body: [response(b)]) as service:  # type: ignore[misc]
            found = weir.get(service.url)
            with weir.Sender(service.url) as sender:
                result = sender.submit("/")
        for read in (found.json, result.json):
            with pytest.raises(json.JSONDecodeError):
                read()
