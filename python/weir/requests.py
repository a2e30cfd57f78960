"""An adapter for requests: `session.mount("https://", weir.requests.Adapter(deadline=1.0))`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from inspect import signature
from os import PathLike
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

import requests as _library
import requests.adapters as _adapters
import requests.exceptions as _exceptions
import urllib3
from requests.utils import select_proxy

from weir._call_log import attempts
from weir._errors import UsageError
from weir._exchange import Exchange
from weir._policy import Budget, Hedge, Retry, Success
from weir._rate import Keys, Rate
from weir._requests_response import raw_response
from weir._shared_budget import SharedBudget
from weir._time import Time
from weir._transport import (
    TransportCall,
    TransportCore,
    can_repeat,
    stages_of,
    unknown_option,
)
from weir._transport_failure import failure_kind, is_last_status

if TYPE_CHECKING:
    from weir import _weir

__all__ = ["Adapter", "attempts"]

# Size of the pieces of a file that is sent.
_PIECE_BYTES = 1 << 16

_EXCEPTIONS: dict[str, type[_exceptions.RequestException]] = {
    "ConnectTimeout": _exceptions.ConnectTimeout,
    "ReadTimeout": _exceptions.ReadTimeout,
    "WriteTimeout": _exceptions.ReadTimeout,
    "PoolTimeout": _exceptions.ConnectTimeout,
    "LocalProtocolError": _exceptions.InvalidHeader,
}


_BY_POINT: dict[str, type[_exceptions.RequestException]] = {
    "content_length": _exceptions.InvalidHeader,
    "body": _exceptions.ChunkedEncodingError,
}


class Adapter(_adapters.HTTPAdapter):
    """Adapter of calls with a deadline, hedging, retries and a budget for these.

    >>> session = requests.Session()
    >>> session.mount("https://", weir.requests.Adapter(deadline=1.0, retries=2))

    `response.weir` has the attempts. Calls through a proxy are the library's own, without these options.
    """

    __module__ = "weir.requests"

    def __init__(
        self,
        *,
        deadline: Time | None = None,
        hedge: Hedge | Iterable[Hedge] | None = None,
        retries: Retry | int | None = None,
        retry_methods: Literal["safe", "idempotent", "all"] = "safe",
        budget: Budget | SharedBudget | None = Budget(),  # noqa: B008  a frozen value
        success: Success | None = None,
        timeout: Time | None = None,
        max_response: int | None = None,
        limit: int | Literal["adaptive"] | None = None,
        rate: Rate | None = None,
        keys: Keys | None = None,
        http2: bool = False,
        uds: str | PathLike[str] | None = None,
        **unknown: Any,
    ) -> None:
        """Make an adapter; connections are opened by calls.

        Args:
            deadline: Deadline of each call, with its whole response.
            hedge: Hedge stages. They count to the first byte of the response's body.
            retries: Maximum retries of a call, or a `weir.Retry`.
            retry_methods: Methods that may be sent more than once: ``"safe"``, ``"idempotent"`` or ``"all"``.
            budget: Budget of all extra attempts; a `SharedBudget` to share it with others, None for no limit.
            success: Rules of a successful response. Rules on the body have it read whole.
            timeout: Timeout of each attempt, to its response's head. Those of the call hold besides.
            max_response: Maximum body of a response in bytes, as received; None is no limit.
            limit: Maximum concurrent calls, or ``"adaptive"``: a limit for each host that follows its service times.
            rate: Rate limits of each key, ``"20/1s"``, or a `weir.Limiter` that others use as well. Each attempt waits
                for a slot; a hedge is sent only if one is free.
            keys: Name of the request's header with its key, or a function of the request. Default: its host.
            http2: Whether HTTP/2 is negotiated over TLS.
            uds: Path of a Unix socket.
            unknown: None; an option that does not exist is a `TypeError`.

        Raises:
            weir.UsageError: A value is invalid.
            TypeError: A value is of another type.
        """
        if {"verify", "cert"} & unknown.keys():
            raise TypeError("weir.requests.Adapter: verify and cert belong to the session, or to a call of it")
        if unknown:
            raise unknown_option("weir.requests.Adapter", unknown, signature(Adapter).parameters)
        super().__init__()
        self._options: dict[str, Any] = {
            "timeout": timeout,
            "deadline": deadline,
            "hedge": stages_of(hedge),
            "retries": retries,
            "budget": budget,
            "success": success,
            "retry_methods": retry_methods,
            "max_response": max_response,
            "limit": limit,
            "rate": rate,
            "keys": keys,
            "http2": http2,
            "uds": uds,
        }
        self._cores: dict[tuple[Any, Any], TransportCore] = {}
        self._core(True, None)

    def __getstate__(self) -> dict[str, Any]:
        """Pickle the options, without connections."""
        return {**super().__getstate__(), "_options": self._options}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Make an adapter of pickled options."""
        super().__setstate__(state)
        self._cores = {}

    def _core(self, verify: Any, cert: Any) -> TransportCore:
        """Find what makes calls with these certificates."""
        key = (verify, tuple(cert) if isinstance(cert, list) else cert)
        core = self._cores.get(key)
        if core is None:
            core = self._cores[key] = TransportCore(
                "weir.requests.Adapter", **self._options, verify=verify, cert=cert, trust_env=False
            )
        return core

    def send(  # noqa: PLR0917  as the library has it
        self,
        request: _library.PreparedRequest,
        stream: bool = False,
        timeout: Any = None,
        verify: Any = True,
        cert: Any = None,
        proxies: Any = None,
    ) -> _library.Response:
        """Make a call.

        Returns:
            The response, whatever its status.

        Raises:
            requests.RequestException: The call failed; its cause is the `weir.ClientError`, with the attempts.
        """
        if _adapters.HTTPAdapter.send.__module__ != _adapters.__name__:
            # Replaced by a test's tool, as responses does.
            return super().send(request, stream, timeout, verify, cert, proxies)
        if select_proxy(request.url or "", proxies):
            self._core(True, None).warn(
                "proxy", "calls through a proxy are the library's own: without deadline, hedging and retries"
            )
            return super().send(request, stream, timeout, verify, cert, proxies)
        is_tls = (request.url or "").lower().startswith("https")
        if is_tls:
            # As the library says which files are missing.
            self.cert_verify(SimpleNamespace(), request.url or "", verify, cert)
        try:
            core = self._core(True if verify is None else verify, cert or None) if is_tls else self._core(True, None)
        except UsageError as error:
            # A file that is there, and has no certificate.
            raise _exceptions.SSLError(str(error), request=request) from error
        body, pieces = _body(request)
        try:
            call = _call(core, request, body, pieces is not None, _timeouts(timeout))
        except UsageError as error:
            raise _exceptions.InvalidHeader(str(error), request=request) from error
        exchange = Exchange(call, pieces)
        try:
            handle = exchange.outcome()
        except BaseException as error:
            call.cancelled(error)
            raise
        if handle.ended != "responded" and not is_last_status(handle):
            raise _error(handle, request) from call.failed(handle)
        response = self.build_response(request, raw_response(handle, exchange, request.method))
        response.weir = call.responded(handle)  # type: ignore[attr-defined]
        return response

    def close(self) -> None:
        """Release connections."""
        super().close()
        for core in self._cores.values():
            core.close()


def _error(handle: _weir.ResponseHandle, request: _library.PreparedRequest) -> _exceptions.RequestException:
    name, text = failure_kind(handle)
    if name == "ReadTimeout":
        pool: Any = None
        late = urllib3.exceptions.ReadTimeoutError(pool, request.url or "", f"Read timed out. ({text})")
        return _exceptions.ReadTimeout(late, request=request)
    of_point = _BY_POINT.get(handle.failure_point)
    if of_point is not None:
        return of_point(text, request=request)
    is_tls = bool(handle.attempts) and handle.attempts[-1][2] == "tls" and name == "ConnectError"
    kind = _exceptions.SSLError if is_tls else _EXCEPTIONS.get(name, _exceptions.ConnectionError)
    return kind(text, request=request)


def _call(
    core: TransportCore,
    request: _library.PreparedRequest,
    body: bytes | None,
    is_streamed: bool,
    timeouts: tuple[float | None, float | None],
) -> TransportCall:
    url = urlsplit(request.url or "")
    if not url.hostname:
        raise _exceptions.InvalidURL(f"no host in {request.url!r}", request=request)
    is_tls = url.scheme.lower() == "https"
    headers = [(_bytes(name), _bytes(value)) for name, value in request.headers.items()]
    if "Host" not in request.headers:
        headers.insert(0, (b"Host", url.netloc.rpartition("@")[2].encode("latin-1")))
    connect, read = timeouts
    return core.call(
        (is_tls, url.hostname, url.port or (443 if is_tls else 80)),
        request.method or "GET",
        request.url,
        request.path_url,
        headers,
        None if is_streamed else body or b"",
        (connect, read, read, connect),
        None,
        request,
    )


def _bytes(text: str | bytes) -> bytes:
    if isinstance(text, bytes):
        return text
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError:
        return text.encode()


def _body(request: _library.PreparedRequest) -> tuple[bytes | None, Iterator[bytes] | None]:
    """Split a body into one that is whole, and one that is sent in pieces."""
    body: Any = request.body
    if body is None or isinstance(body, bytes):
        return body, None
    if isinstance(body, str):
        return body.encode(), None
    if isinstance(body, bytearray | memoryview):
        return bytes(body), None
    pieces = _pieces(body)
    if can_repeat(request.headers.get("Content-Length")):
        return b"".join(pieces), None
    return None, pieces


def _pieces(body: Any) -> Iterator[bytes]:
    if hasattr(body, "read"):
        while piece := body.read(_PIECE_BYTES):
            yield piece.encode() if isinstance(piece, str) else piece
    else:
        for piece in body:
            yield piece.encode() if isinstance(piece, str) else piece


def _timeouts(timeout: Any) -> tuple[float | None, float | None]:
    """Split a timeout of requests into those of connecting and reading."""
    if isinstance(timeout, tuple):
        try:
            connect, read = timeout
        except ValueError:
            raise ValueError(f"Invalid timeout {timeout}. Pass a (connect, read) timeout tuple, or a number.") from None
        parsed = urllib3.Timeout(connect=connect, read=read)
    elif isinstance(timeout, urllib3.Timeout):
        parsed = timeout.clone()
    else:
        # Checks the values, too.
        parsed = urllib3.Timeout(connect=timeout, read=timeout)
    parsed.start_connect()
    limits = [one if isinstance(one, int | float) else None for one in (parsed.connect_timeout, parsed.read_timeout)]
    return limits[0], limits[1]
