"""Responses of a call as requests reads them: those of urllib3."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from email.message import Message
from typing import TYPE_CHECKING

import urllib3

if TYPE_CHECKING:
    from weir import _weir
    from weir._exchange import Exchange

__all__ = ["raw_response"]

# Size of the pieces of a body that is read without one.
_PIECE_BYTES = 1 << 16


class _Head:
    """Head of a response as `requests` reads it for cookies; urllib3 closes it where a read was broken off."""

    def __init__(self, headers: Iterable[tuple[bytes, bytes]], body: _Body) -> None:
        self._body = body
        self.msg = Message()
        for name, value in headers:
            self.msg.add_header(name.decode("latin-1"), value.decode("latin-1"))

    def isclosed(self) -> bool:
        return self._body.closed

    def close(self) -> None:
        self._body.close()


class _Response(urllib3.HTTPResponse):
    """Response whose pieces are passed on as they come where the library does so: those of a chunked body."""

    def stream(self, amt: int | None = 2**16, decode_content: bool | None = None) -> Iterator[bytes]:  # type: ignore[override]
        if not self.chunked or amt == 0:
            yield from super().stream(amt, decode_content)
            return
        while piece := self.read1(amt, decode_content):
            yield piece


class _Body:
    """Body of a response as a file, as it arrives."""

    def __init__(self, exchange: Exchange, handle: _weir.ResponseHandle) -> None:
        self._exchange = exchange
        self._rest = handle.body if handle.is_whole else b""
        self._has_ended = handle.is_whole
        self._is_closed = False

    @property
    def closed(self) -> bool:
        """Whether nothing more can be read: urllib3 reads until then."""
        return self._is_closed or (self._has_ended and not self._rest)

    def read(self, amount: int | None = None) -> bytes:
        if amount is None or amount < 0:
            pieces = [self._rest]
            while not self._has_ended:
                pieces.append(self._next())
            self._rest = b""
            return b"".join(pieces)
        while not self._rest and not self._has_ended:
            self._rest = self._next()
        piece, self._rest = self._rest[:amount], self._rest[amount:]
        return piece

    def read1(self, amount: int | None = None) -> bytes:
        return self.read(_PIECE_BYTES if amount is None else amount)

    def _next(self) -> bytes:
        chunk = self._exchange.chunk()
        if isinstance(chunk, bytes):
            self._has_ended = not chunk
            return chunk
        # urllib3 turns these into its own, and requests into its.
        raise (TimeoutError(chunk.text) if chunk.kind == "ReadTimeout" else OSError(chunk.text)) from chunk.cause

    def close(self) -> None:
        self._is_closed = True
        self._exchange.close()


def raw_response(handle: _weir.ResponseHandle, exchange: Exchange, method: str | None) -> urllib3.HTTPResponse:
    """Make the response of a call."""
    body = _Body(exchange, handle)
    headers = handle.received_headers
    fields = urllib3.HTTPHeaderDict()
    for name, value in headers:
        fields.add(name.decode("latin-1"), value.decode("latin-1"))
    version = {"HTTP/2": 20, "HTTP/1.0": 10}.get(handle.version, 11)
    return _Response(
        body=body,  # type: ignore[arg-type]
        headers=fields,
        status=handle.status,
        version=version,
        reason=handle.reason_phrase.decode("latin-1"),
        preload_content=False,
        decode_content=False,
        original_response=_Head(headers, body),  # type: ignore[arg-type]
        request_method=method,
    )
