"""Content codings of bodies, decoded piece by piece up to a maximum."""

from __future__ import annotations

import io
import zlib
from collections.abc import Generator, Sequence

__all__: list[str] = []

DECODED = frozenset({"gzip", "x-gzip", "deflate", "identity"})
"""Codings that are decoded."""

# A handful of bytes may decode to a thousand times as many, in each coding.
_MAX_CODINGS = 5
# Members of a gzip file may be empty. Blocked gzip (BGZF) has one per 64 KiB of text.
_MAX_MEMBERS = 65_536
_INPUT_BYTES = 1 << 14
_OUTPUT_BYTES = 1 << 18


class BodyTooLargeError(Exception):
    """Body that is longer than the maximum when decoded."""


class InvalidBodyError(Exception):
    """Body that does not match its coding."""


def decoding(body: bytes, codings: Sequence[str], max_bytes: int | None) -> Generator[int, None, bytes]:
    """Decode a body; yield the number of bytes of each piece, and return the whole.

    Any thread may take the next step, and zlib releases the GIL in it. No result is longer than the maximum, those of
    codings in between included, and memory is bounded likewise.

    Args:
        body: Body as received.
        codings: Codings in the order of their application; those after one that is not decoded.
        max_bytes: Maximum bytes; None is unlimited.

    Raises:
        BodyTooLargeError: The body is longer.
        InvalidBodyError: It does not match a coding.
    """
    known = [coding for coding in codings if coding != "identity"]
    if len(known) > _MAX_CODINGS:
        raise InvalidBodyError(f"{len(known)} content codings; at most {_MAX_CODINGS} are decoded")
    for coding in reversed(known):
        try:
            body = yield from _inflating(body, coding, max_bytes)
        except zlib.error as error:
            raise InvalidBodyError(f"the body is not {coding}: {error}") from error
    return body


def _inflating(body: bytes, coding: str, max_bytes: int | None) -> Generator[int, None, bytes]:
    """Decode all members of a gzip file, or a zlib stream."""
    out = io.BytesIO()
    whole = memoryview(body)
    at = members = 0
    # Some servers send deflate without zlib's frame.
    is_raw = coding == "deflate" and not _has_zlib_frame(body)
    while at < len(body):
        members += 1
        if members > _MAX_MEMBERS:
            raise InvalidBodyError(f"the body has more than {_MAX_MEMBERS} gzip members")
        member = zlib.decompressobj(-zlib.MAX_WBITS if is_raw else zlib.MAX_WBITS | 32)
        is_full = False
        while not member.eof:
            piece: bytes | memoryview = member.unconsumed_tail
            if not piece and not is_full:
                piece = whole[at : at + _INPUT_BYTES]
                at += len(piece)
                if not piece:
                    raise zlib.error("incomplete stream")
            decoded = member.decompress(piece, _OUTPUT_BYTES)
            # There may be more, without further input.
            is_full = len(decoded) == _OUTPUT_BYTES
            if max_bytes is not None and out.tell() + len(decoded) > max_bytes:
                raise BodyTooLargeError
            out.write(decoded)
            yield len(decoded)
        at -= len(member.unused_data)
        if is_raw:
            break
        at += _zeros(whole[at:])
    return out.getvalue()


def _has_zlib_frame(body: bytes) -> bool:
    return body != b"" and body[0] & 0x0F == zlib.DEFLATED and int.from_bytes(body[:2], "big") % 31 == 0


def _zeros(rest: memoryview) -> int:
    """Number of zeros at the start: padding of the last block of a gzip file."""
    at = 0
    while at < len(rest) and rest[at] == 0:
        piece = bytes(rest[at : at + _INPUT_BYTES])
        at += len(piece) - len(piece.lstrip(b"\0"))
    return at
