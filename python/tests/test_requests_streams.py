"""Streams through the adapter for requests: pieces come as the library's own pass them on, and end."""

import gzip
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
from raw_service import Pieces, raw_service

import weir
import weir.requests

EVENTS = [b"data: 0\n\n", b"data: 1\n\n"]


def session(**options: Any) -> requests.Session:
    """A session by weir's adapter."""
    session = requests.Session()
    session.trust_env = False
    session.mount("http://", weir.requests.Adapter(**options))
    return session


def events(go_on: threading.Event, encode: Callable[[bytes], bytes] = bytes) -> Callable[[str], Pieces]:
    """Respond with chunks, of which the second comes when the first was read."""

    def respond(_: str) -> Iterator[bytes]:
        coding = b"" if encode is bytes else b"Content-Encoding: gzip\r\n"
        yield b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n" + coding + b"\r\n"
        for piece in map(encode, EVENTS):
            yield b"%x\r\n%s\r\n" % (len(piece), piece)
            go_on.wait(20)
        yield b"0\r\n\r\n"

    return respond


@pytest.mark.parametrize("encode", [bytes, gzip.compress])
@pytest.mark.parametrize("size", [None, 1, 512, 100_000])
def test_pieces_of_a_chunked_body_are_passed_on_as_they_come(
    size: int | None, encode: Callable[[bytes], bytes]
) -> None:
    go_on = threading.Event()
    with raw_service(events(go_on, encode)) as service, session() as one:
        seen = b""
        for piece in one.get(service.url, stream=True).iter_content(size):
            seen += piece
            if seen == EVENTS[0]:
                go_on.set()
    assert seen == b"".join(EVENTS)


def test_lines_of_a_stream_of_events_come_at_once() -> None:
    go_on = threading.Event()
    with raw_service(events(go_on)) as service, session() as one:
        lines = one.get(service.url, stream=True).iter_lines()
        assert next(lines) == b"data: 0"
        go_on.set()
        assert [line for line in lines if line] == [b"data: 1"]


@pytest.mark.parametrize("path", ["/static?bytes=0", "/static?bytes=10", "/static?bytes=300000", "/chunked?chunks=3"])
def test_a_body_read_without_a_size_ends(path: str) -> None:
    with weir.serve("httpbin") as service, session() as one:
        whole = one.get(service.url + path).content
        assert b"".join(one.get(service.url + path, stream=True).iter_content(None)) == whole
        raw = one.get(service.url + path, stream=True).raw
        pieces = iter(raw.read1, b"")
        assert b"".join(pieces) == whole
        assert raw.closed or raw._fp.closed


def test_a_response_that_is_not_http_is_no_invalid_header() -> None:
    text = b"HTTP/1.1 99 OK\r\nContent-Length: 2\r\n\r\nok"
    with raw_service(lambda _: [text]) as service, session() as one, pytest.raises(requests.ConnectionError):
        one.get(service.url)


def test_files_without_certificates_are_errors_of_tls(tmp_path: Path) -> None:
    (tmp_path / "empty.pem").write_text("nothing")
    with session() as one:
        one.mount("https://", weir.requests.Adapter())
        for verify in (tmp_path / "empty.pem", tmp_path):
            with pytest.raises(requests.exceptions.SSLError, match="verify"):
                one.get("https://127.0.0.1:1/", verify=str(verify))
