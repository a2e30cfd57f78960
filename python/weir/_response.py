"""Responses of calls, and their attempts."""

from __future__ import annotations

import codecs
from collections.abc import Generator
from dataclasses import dataclass
from datetime import timedelta
from email.message import Message
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from weir._decoding import DECODED, BodyTooLargeError, InvalidBodyError, decoding
from weir._errors import ClientError, DecodingError, HTTPStatusError, ResponseTooLarge
from weir._headers import Headers
from weir._json_text import parsed
from weir._weir import without_secrets

if TYPE_CHECKING:
    from weir import _weir

__all__ = ["Attempt", "Request", "Response"]


@dataclass(frozen=True, slots=True)
class Attempt:
    """Attempt of a call: one request to an upstream.

    Attributes:
        number: Number in the order of start, from 1.
        reason: Why it was started: ``"first"``, ``"stage"`` (the time of a hedge stage passed), ``"failure"`` (an
            attempt failed) or ``"retry"``.
        upstream: Host and port.
        outcome: ``"won"``, ``"cancelled"``, ``"status"``, or the kind of its failure: dns, connect, tls, timeout,
            closed, reset, protocol, body, header, request (the request itself cannot be sent), or a gRPC code such as
            grpc-14.
        status: Status of its response, if it won or failed by it.
        detail: Message of the failure, if any.
        started_ms: Start, in milliseconds from the start of the call.
        duration_ms: Duration in milliseconds.
    """

    __module__ = "weir"

    number: int
    reason: str
    upstream: str
    outcome: str
    status: int | None
    detail: str | None
    started_ms: float
    duration_ms: float

    @property
    def won(self) -> bool:
        """Whether its response is the response of the call."""
        return self.outcome == "won"

    def __str__(self) -> str:
        """Return the outcome, with its detail."""
        end = f"status {self.status}" if self.outcome == "status" else self.outcome
        return f"{end} ({self.detail})" if self.detail else end


class Request:
    """Request of a response, as it was sent."""

    __module__ = "weir"
    __slots__ = ("_handle", "_headers")

    def __init__(self, handle: _weir.SentRequestHandle) -> None:
        """Wrap a request; for clients only."""
        self._handle = handle
        self._headers: Headers | None = None

    @property
    def method(self) -> str:
        """Method, in upper case."""
        return self._handle.method

    @property
    def url(self) -> str:
        """URL with the query, without user and password."""
        return self._handle.url

    @property
    def headers(self) -> Headers:
        """Headers, without those that are set per attempt (Host, Content-Length)."""
        return _headers_of(self)

    @property
    def content(self) -> bytes:
        """Body."""
        return self._handle.body

    def __repr__(self) -> str:
        """Return method and URL."""
        return f"<weir.Request {self.method} {without_secrets(self.url)}>"


#: Content codings that are not decoded and leave no readable text.
_COMPRESSED = frozenset({"br", "zstd", "compress", "x-compress"})


class Response:
    """Response with its whole body. Its parts are computed on first use, and cached."""

    __module__ = "weir"
    __slots__ = ("_attempts", "_content", "_encoding", "_handle", "_headers")

    _attempts: tuple[Attempt, ...]
    _encoding: str
    # The decoded body, or the exception that decoding it raises. A copy of that would be a cycle with the response.
    _content: bytes | tuple[type[ClientError], str] | None

    def __init__(self, handle: _weir.ResponseHandle) -> None:
        """Wrap a response; for clients only."""
        self._handle = handle
        self._headers: Headers | None = None
        self._content = None

    def __repr__(self) -> str:
        """Return status and reason phrase."""
        return f"<weir.Response [{self.status_code} {self.reason_phrase}]>"

    @property
    def status_code(self) -> int:
        """HTTP status."""
        return self._handle.status

    @property
    def reason_phrase(self) -> str:
        """Standard reason phrase of the status; the server's own is ignored."""
        try:
            return HTTPStatus(self.status_code).phrase
        except ValueError:
            return ""

    @property
    def http_version(self) -> str:
        """HTTP version: ``"HTTP/1.1"`` or ``"HTTP/2"``."""
        return self._handle.version

    @property
    def headers(self) -> Headers:
        """Headers, with case-insensitive names."""
        return _headers_of(self)

    @property
    def content(self) -> bytes:
        """Body, decoded if Content-Encoding is gzip or deflate, which are requested by default.

        A body in another coding (br or zstd, where a header of the call requests it) is as received.

        Raises:
            DecodingError: The body does not match its Content-Encoding.
            ResponseTooLarge: It is longer than `max_response` when decoded.
        """
        if self._content is None:
            steps = self._decoding()
            if steps is None:
                self._content = self._handle.body
            else:
                self._decode(steps)
        content = self._content
        if isinstance(content, tuple):
            kind, message = content
            raise kind(message, self.attempts, self)
        return content or b""

    @property
    def encoding(self) -> str:
        """Character set of the body: that of Content-Type, or utf-8. It may be assigned."""
        try:
            return self._encoding
        except AttributeError:
            head = Message()
            head["content-type"] = self.headers.get("content-type", "")
            named = head.get_content_charset() or "utf-8"
            self._encoding = named if _is_charset(named) and _is_cheap(named) else "utf-8"
            return self._encoding

    @encoding.setter
    def encoding(self, name: str) -> None:
        if not _is_charset(name):
            raise LookupError(f"unknown encoding: {name}")
        self._encoding = name

    @property
    def text(self) -> str:
        """Body as text; bytes that are invalid in the encoding become U+FFFD.

        Raises:
            DecodingError: The body does not match its Content-Encoding, or is in a coding that is not decoded.
            ResponseTooLarge: It is longer than `max_response` when decoded.
        """
        return self._readable().decode(self.encoding, errors="replace")

    def json(self, **options: Any) -> Any:
        """Parse the body as JSON; options are passed to `json.loads`.

        Returns:
            The parsed value.

        Raises:
            json.JSONDecodeError: The body is not JSON, or nested too deep for Python's parser.
            DecodingError: As for `text`.
            ResponseTooLarge: As for `text`.
        """
        return parsed(self._readable(), options)

    @property
    def request(self) -> Request:
        """Request as it was sent."""
        return Request(self._handle.request)

    @property
    def url(self) -> str:
        """URL of the request."""
        return self._handle.request.url

    @property
    def elapsed(self) -> timedelta:
        """Time from the start of the call to the last byte of the body."""
        return timedelta(seconds=self._handle.elapsed_s)

    @property
    def attempts(self) -> tuple[Attempt, ...]:
        """Attempts of the call, in the order of their start."""
        try:
            return self._attempts
        except AttributeError:
            self._attempts = attempts_of(self._handle)
            return self._attempts

    @property
    def not_sent(self) -> str | None:
        """Extra attempts that were not sent, and the limit that stopped them; None if all were sent."""
        return self._handle.not_sent

    @property
    def won(self) -> Attempt | None:
        """Attempt whose response this is; None if no attempt succeeded, and this is the last response."""
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
        """Raise an exception for a status other than 2xx.

        Returns:
            The response itself.

        Raises:
            HTTPStatusError: The status is not 2xx.
        """
        if self.is_success:
            return self
        request = self.request
        message = f"{request.method} {without_secrets(request.url)}: {self.status_code} {self.reason_phrase}".rstrip()
        if self.not_sent:
            message = f"{message}; {self.not_sent}"
        raise HTTPStatusError(message, self.attempts, self)

    def _is(self, hundreds: int) -> bool:
        return self.status_code // 100 == hundreds

    def _readable(self) -> bytes:
        content, left = self.content, self._codings() if self._handle.body_length else []
        while left and left[-1] in DECODED:
            left.pop()
        if left and left[-1] in _COMPRESSED:
            raise DecodingError(
                f"{without_secrets(self.url)}: the body is {left[-1]}, which weir does not decode; omit "
                "accept-encoding, or decode response.content",
                self.attempts,
                self,
            )
        return content

    def _codings(self) -> list[str]:
        """Content codings, in the order of their application."""
        return [coding.strip().lower() for coding in (self._handle.coding or "").split(",")]

    def _decoding(self) -> Generator[int, None, bytes] | None:
        """Steps of decoding the body; None if it is as received."""
        if self._handle.coding is None or not self._handle.body_length:
            return None
        codings = self._codings()
        # Codings that only the caller requested are left to the caller, with those before them.
        first = max((at + 1 for at, coding in enumerate(codings) if coding not in DECODED), default=0)
        return decoding(self._handle.body, codings[first:], self._handle.max_response)

    def _decode(self, steps: Generator[int, None, bytes], max_bytes: int | None = None) -> bool:
        """Decode the body, or about this number of bytes of it; return whether that is all. Errors are kept."""
        done = 0
        try:
            while max_bytes is None or done < max_bytes:
                done += next(steps)
        except StopIteration as end:
            self._content = end.value
        except InvalidBodyError as error:
            self._content = DecodingError, f"{without_secrets(self.url)}: {error}"
        except BodyTooLargeError:
            most = self._handle.max_response
            message = f"{without_secrets(self.url)}: the decoded response is longer than {most} bytes, max_response"
            self._content = ResponseTooLarge, message
        else:
            return False
        return True


def _headers_of(part: Request | Response) -> Headers:
    """Headers of a request or response, which are made when they are first asked for."""
    if part._headers is None:
        part._headers = Headers._of(part._handle.headers)
    return part._headers


def attempts_of(handle: _weir.ResponseHandle) -> tuple[Attempt, ...]:
    """List the attempts of a call."""
    return tuple(Attempt(number, *attempt) for number, attempt in enumerate(handle.attempts, 1))


def _is_charset(name: str) -> bool:
    try:
        # Some of Python's codecs, such as base64, are not character sets.
        return bool(codecs.lookup(name)._is_text_encoding)
    except LookupError:
        return False


def _is_cheap(name: str) -> bool:
    """Whether a server may choose it: others are not character sets of bodies, and some take quadratic time."""
    return codecs.lookup(name).name not in {"idna", "punycode", "raw-unicode-escape", "undefined", "unicode-escape"}
