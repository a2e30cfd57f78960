"""Answers to calls, and how the calls went."""

from __future__ import annotations

import codecs
import json as json_module
import zlib
from dataclasses import dataclass
from datetime import timedelta
from email.message import Message
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from weir._errors import (
    AllAttemptsFailed,
    ClientError,
    ConnectFailed,
    DeadlineExceeded,
    DecodingError,
    HTTPStatusError,
    TimedOut,
)
from weir._headers import Headers

if TYPE_CHECKING:
    from weir import _weir

__all__ = ["Attempt", "Request", "Response"]


@dataclass(frozen=True, slots=True)
class Attempt:
    """One copy of a call sent upstream."""

    __module__ = "weir"

    number: int
    """1 for the first."""
    why: str
    """``"first"``, ``"stage"`` (a hedge's time was over), ``"failure"`` (an attempt had failed) or ``"retry"``."""
    upstream: str
    """Where it went."""
    outcome: str
    """``"won"``, ``"cancelled"``, ``"status"``, or the kind of its failure: dns, connect, tls, timeout, closed,
    reset, protocol, body, header."""
    status: int | None
    """The status of its answer, if it won or failed by it."""
    detail: str | None
    """What the failure said, if anything."""
    started_ms: float
    """When it was launched, from the call's start."""
    took_ms: float
    """How long it went on."""

    @property
    def won(self) -> bool:
        """Whether its answer is the call's."""
        return self.outcome == "won"

    def __str__(self) -> str:
        """Say how it ended."""
        end = f"status {self.status}" if self.outcome == "status" else self.outcome
        return f"{end} ({self.detail})" if self.detail else end


class Request:
    """What was asked."""

    __module__ = "weir"
    __slots__ = ("_handle", "_headers")

    def __init__(self, handle: _weir.SentRequestHandle) -> None:
        """Wrap a request of Rust's; clients make them."""
        self._handle = handle
        self._headers: Headers | None = None

    @property
    def method(self) -> str:
        """The method."""
        return self._handle.method

    @property
    def url(self) -> str:
        """Where to, with the query; without user and password."""
        return self._handle.url

    @property
    def headers(self) -> Headers:
        """The headers, without those that every attempt gets anew (Host, Content-Length)."""
        if self._headers is None:
            self._headers = Headers._of(self._handle.headers)
        return self._headers

    @property
    def content(self) -> bytes:
        """The body."""
        return self._handle.body

    def __repr__(self) -> str:
        """Say what is asked."""
        return f"<weir.Request {self.method} {self.url}>"


#: Codings of bodies that are undone, and others that make a text unreadable.
_DECODED = frozenset({"gzip", "x-gzip", "deflate", "identity"})
_COMPRESSED = frozenset({"br", "zstd", "compress", "x-compress"})


class Response:
    """An answer. Its parts are made when they are asked for, and kept."""

    __module__ = "weir"
    __slots__ = ("_answer", "_attempts", "_content", "_encoding", "_headers")

    _attempts: tuple[Attempt, ...]
    _encoding: str

    def __init__(self, answer: _weir.ResponseHandle) -> None:
        """Wrap an answer of Rust's; clients make them."""
        self._answer = answer
        self._headers: Headers | None = None
        self._content: bytes | None = None

    def __repr__(self) -> str:
        """Say what came."""
        return f"<weir.Response [{self.status_code} {self.reason_phrase}]>"

    @property
    def status_code(self) -> int:
        """The status."""
        return self._answer.status

    @property
    def reason_phrase(self) -> str:
        """What the status means; always the standard's words."""
        try:
            return HTTPStatus(self.status_code).phrase
        except ValueError:
            return ""

    @property
    def http_version(self) -> str:
        """``"HTTP/1.1"`` or ``"HTTP/2"``."""
        return self._answer.version

    @property
    def headers(self) -> Headers:
        """The headers."""
        if self._headers is None:
            self._headers = Headers._of(self._answer.headers)
        return self._headers

    @property
    def content(self) -> bytes:
        """The body, decoded if Content-Encoding is gzip or deflate, which are all that is asked for.

        A body in another coding (br or zstd, because a header of the call asked for it) is as it came.

        Raises:
            DecodingError: It is not what Content-Encoding says.
        """
        if self._content is None:
            self._content = self._decoded()
        return self._content

    @property
    def encoding(self) -> str:
        """The body's character set: Content-Type's, or else utf-8. It may be set."""
        try:
            return self._encoding
        except AttributeError:
            head = Message()
            head["content-type"] = self.headers.get("content-type", "")
            named = head.get_content_charset() or "utf-8"
            self._encoding = named if _is_charset(named) else "utf-8"
            return self._encoding

    @encoding.setter
    def encoding(self, name: str) -> None:
        if not _is_charset(name):
            raise LookupError(f"unknown encoding: {name}")
        self._encoding = name

    @property
    def text(self) -> str:
        """The body as text; what does not fit the encoding becomes U+FFFD.

        Raises:
            DecodingError: It is not what Content-Encoding says, or in a coding that is not decoded here.
        """
        return self._readable().decode(self.encoding, errors="replace")

    def json(self, **options: Any) -> Any:
        """Read the body as JSON; options go to `json.loads`.

        Raises:
            json.JSONDecodeError: It is none.
            DecodingError: As with `text`.
        """
        return json_module.loads(self._readable(), **options)

    @property
    def request(self) -> Request:
        """What was asked."""
        return Request(self._answer.request)

    @property
    def url(self) -> str:
        """Where the answer is from."""
        return self._answer.request.url

    @property
    def elapsed(self) -> timedelta:
        """The time from the call's start to the body's last byte."""
        return timedelta(seconds=self._answer.elapsed_s)

    @property
    def attempts(self) -> tuple[Attempt, ...]:
        """What was tried, in the order of launch."""
        try:
            return self._attempts
        except AttributeError:
            self._attempts = _attempts(self._answer)
            return self._attempts

    @property
    def won(self) -> Attempt | None:
        """The attempt whose answer this is; None if none was a success, and this is the last that came."""
        return next((attempt for attempt in self.attempts if attempt.won), None)

    @property
    def is_informational(self) -> bool:
        """Whether the status is 1xx."""
        return self._is(1)

    @property
    def is_success(self) -> bool:
        """Whether the status is 2xx."""
        return self._is(2)

    @property
    def is_redirect(self) -> bool:
        """Whether the status is 3xx."""
        return self._is(3)

    @property
    def is_client_error(self) -> bool:
        """Whether the status is 4xx."""
        return self._is(4)

    @property
    def is_server_error(self) -> bool:
        """Whether the status is 5xx."""
        return self._is(5)

    @property
    def is_error(self) -> bool:
        """Whether the status is 4xx or 5xx."""
        return self.is_client_error or self.is_server_error

    def raise_for_status(self) -> Response:
        """Return the response itself if its status is 2xx.

        Raises:
            HTTPStatusError: It is not.
        """
        if self.is_success:
            return self
        asked = self.request
        message = f"{asked.method} {asked.url}: {self.status_code} {self.reason_phrase}".rstrip()
        raise HTTPStatusError(message, self.attempts, self)

    def _is(self, hundreds: int) -> bool:
        return self.status_code // 100 == hundreds

    def _readable(self) -> bytes:
        content, left = self.content, self._codings() if self._answer.body else []
        while left and left[-1] in _DECODED:
            left.pop()
        if left and left[-1] in _COMPRESSED:
            raise DecodingError(
                f"{self.url}: the body is {left[-1]}, which is neither asked for by default nor decoded "
                "here; leave accept-encoding out, or decode response.content",
                self.attempts,
                self,
            )
        return content

    def _codings(self) -> list[str]:
        """What the body was put through, in that order."""
        return [coding.strip().lower() for coding in (self._answer.coding or "").split(",")]

    def _decoded(self) -> bytes:
        content = self._answer.body
        if self._answer.coding is None or not content:
            return content
        for coding in reversed(self._codings()):
            if coding not in _DECODED:
                # What was never offered is left to the caller.
                break
            if coding != "identity":
                try:
                    content = _inflated(content, coding)
                except zlib.error as error:
                    raise DecodingError(
                        f"{self.url}: the body is not {coding}: {error}", self.attempts, self
                    ) from error
        return content


def failure(answer: _weir.ResponseHandle) -> ClientError:
    """Make the exception for a call without an answer to give."""
    attempts = _attempts(answer)
    response = Response(answer) if answer.status else None
    asked = f"{answer.request.method} {answer.request.url}"
    ends = ", ".join(map(str, attempts)) or "none was sent"
    if answer.ended == "late":
        return DeadlineExceeded(
            f"{asked}: no answer after {answer.elapsed_s:.3g} s; attempts: {ends}", attempts, response
        )
    kinds = {attempt.outcome for attempt in attempts}
    kind = AllAttemptsFailed
    if kinds and kinds <= {"dns", "connect", "tls"}:
        kind = ConnectFailed
    elif kinds == {"timeout"}:
        kind = TimedOut
    return kind(f"{asked}: no success; attempts: {ends}", attempts, response)


def _attempts(answer: _weir.ResponseHandle) -> tuple[Attempt, ...]:
    return tuple(Attempt(number, *attempt) for number, attempt in enumerate(answer.attempts, 1))


def _is_charset(name: str) -> bool:
    try:
        # Some codecs of Python's are no character sets: base64.
        return bool(codecs.lookup(name)._is_text_encoding)
    except LookupError:
        return False


def _inflated(content: bytes, coding: str) -> bytes:
    """Decode all members of a gzip file, or a zlib stream; some servers send deflate without zlib's frame."""
    if coding == "deflate" and (content[0] & 0x0F != zlib.DEFLATED or int.from_bytes(content[:2], "big") % 31):
        return zlib.decompress(content, -zlib.MAX_WBITS)
    parts = []
    while content:
        member = zlib.decompressobj(zlib.MAX_WBITS | 32)
        parts.append(member.decompress(content))
        if not member.eof:
            raise zlib.error("it ends too early")
        # Zeros may fill a last block up.
        content = member.unused_data.lstrip(b"\0")
    return b"".join(parts)
