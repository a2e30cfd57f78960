"""Transports for httpx2 and httpx, which have the same interface: the classes of `weir.httpx2` and `weir.httpx`."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Iterable, Iterator
from inspect import signature
from os import PathLike
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NoReturn

from weir._errors import UsageError
from weir._exchange import AwaitedExchange, BrokenBody, Exchange
from weir._policy import Budget, Hedge, Retry, Success
from weir._rate import Keys, Rate
from weir._shared_budget import SharedBudget
from weir._time import Time
from weir._transport import TransportCall, TransportCore, can_repeat, unknown_option
from weir._transport_failure import failure_kind, is_last_status

if TYPE_CHECKING:
    from weir import _weir

__all__ = ["AwaitedTransport", "BlockingTransport", "transports_for"]

_NO_TIMEOUTS: dict[str, float | None] = {}


class BodyStream:
    """Body of a response, as it arrives."""

    _library: ClassVar[Any]

    def __init__(self, exchange: Exchange, request: Any) -> None:
        self._exchange = exchange
        self._request = request

    def __iter__(self) -> Iterator[bytes]:
        while chunk := self._exchange.chunk():
            if not isinstance(chunk, bytes):
                raise_broken_off(self._library, chunk, self._request)
            yield chunk

    def close(self) -> None:
        self._exchange.close()


class AwaitedBodyStream:
    """Body of a response, as it arrives."""

    _library: ClassVar[Any]

    def __init__(self, exchange: AwaitedExchange, request: Any) -> None:
        self._exchange = exchange
        self._request = request

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while chunk := await self._exchange.chunk():
            if not isinstance(chunk, bytes):
                raise_broken_off(self._library, chunk, self._request)
            yield chunk

    async def aclose(self) -> None:
        await self._exchange.close()


def raise_broken_off(library: Any, broken: BrokenBody, request: Any) -> NoReturn:
    """Raise the exception of a body that breaks off."""
    raise getattr(library, broken.kind)(broken.text, request=request) from broken.cause


class TransportOptions:
    """What both transports have in common."""

    _library: ClassVar[Any]
    _body: ClassVar[Any]
    _core: TransportCore

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
        verify: bool | str | PathLike[str] = True,
        cert: Any = None,
        trust_env: bool = True,
        http1: bool = True,
        http2: bool = False,
        limits: Any = None,
        proxy: None = None,
        uds: str | None = None,
        local_address: None = None,
        socket_options: None = None,
        **unknown: Any,
    ) -> None:
        """Make a transport; connections are opened by calls.

        Args:
            deadline: Deadline of each call, with its whole response.
            hedge: Hedge stages. They count to the first byte of the response's body.
            retries: Maximum retries of a call, or a `weir.Retry`.
            retry_methods: Methods that may be sent more than once: ``"safe"``, ``"idempotent"`` or ``"all"``.
            budget: Budget of all extra attempts; a `SharedBudget` to share it with others, None for no limit.
            success: Rules of a successful response. Rules on the body have it read whole.
            timeout: Timeout of each attempt, to its response's head. The library's own timeouts hold besides.
            max_response: Maximum body of a response in bytes, as received; None is no limit.
            limit: Maximum concurrent calls, or ``"adaptive"``: a limit for each host that follows its service times.
            rate: Rate limits of each key, ``"20/1s"``, or a `weir.Limiter` that others use as well. Each attempt waits
                for a slot; a hedge is sent only if one is free.
            keys: Name of the request's header with its key, or a function of the request. Default: its host.
            verify: Verification of certificates; or a PEM file of CA certificates, instead of the system's.
            cert: Client certificate and its key: a PEM file with both, or two.
            trust_env: Whether to warn of a proxy that the environment names; none is used.
            http1: True; HTTP/1.1 is always there.
            http2: Whether HTTP/2 is negotiated over TLS.
            limits: The library's `Limits`: `max_connections` is a `limit`, the others are those of idle connections.
            proxy: None; this transport connects directly.
            uds: Path of a Unix socket.
            local_address: None.
            socket_options: None.
            unknown: None; an option that does not exist is a `TypeError`.

        Raises:
            weir.UsageError: A value is invalid.
            TypeError: A value is of another type.
        """
        owner = f"weir.{self._library.__name__}.{type(self).__name__}"
        if unknown:
            raise unknown_option(owner, unknown, signature(TransportOptions).parameters)
        if limits is not None and not isinstance(limits, self._library.Limits):
            raise TypeError(f"limits: a {self._library.__name__}.Limits, not {type(limits).__name__}; or limit=10")
        if not http1:
            raise UsageError("http1: HTTP/1.1 cannot be switched off; http2=True negotiates HTTP/2 over TLS")
        for name, given in (("local_address", local_address), ("socket_options", socket_options)):
            if given is not None:
                raise UsageError(f"{name}: connections of this transport have none; leave it out")
        if proxy is not None:
            raise UsageError(
                f"proxy: this transport connects directly; mount {self._library.__name__}.HTTPTransport(proxy=...) "
                "for URLs that need one"
            )
        if limits is not None and limit is None and not http2:
            limit = limits.max_connections
        self._core = TransportCore(
            owner,
            timeout=timeout,
            deadline=deadline,
            hedge=hedge,
            retries=retries,
            budget=budget,
            success=success,
            retry_methods=retry_methods,
            max_response=max_response,
            limit=limit,
            rate=rate,
            keys=keys,
            verify=verify,
            cert=cert,
            http2=http2,
            uds=uds,
            idle_timeout=None if limits is None else limits.keepalive_expiry,
            max_idle=None if limits is None else limits.max_keepalive_connections,
            trust_env=trust_env,
        )

    def _call(self, request: Any, body: bytes | None) -> TransportCall:
        if not isinstance(request, self._library.Request):
            other = type(request).__module__.partition(".")[0]
            mine = f"weir.{self._library.__name__}.{type(self).__name__}"
            raise TypeError(
                f"{mine} is for {self._library.__name__}; with {other} use weir.{other}.{type(self).__name__}"
            )
        url, extensions = request.url, request.extensions
        scheme = url.scheme
        if scheme not in {"http", "https"}:
            what = (
                f"has an unsupported protocol '{scheme}://'"
                if scheme
                else "is missing an 'http://' or 'https://' protocol"
            )
            raise self._library.UnsupportedProtocol(f"Request URL {what}.", request=request)
        timeouts = extensions.get("timeout") or _NO_TIMEOUTS
        if "trace" in extensions:
            self._core.warn(
                "trace",
                "the extension 'trace' is told of two events, send_request_headers.started and "
                "receive_response_headers.complete; response.extensions['weir'] has the attempts",
            )
        host = url.raw_host.decode("ascii")
        if not host:
            raise self._library.UnsupportedProtocol("Request URL has no host.", request=request)
        is_tls = scheme == "https"
        try:
            return self._core.call(
                (is_tls, host, url.port or (443 if is_tls else 80)),
                request.method,
                url,
                extensions.get("target", url.raw_path).decode("ascii"),
                request.headers.raw,
                body,
                (timeouts.get("connect"), timeouts.get("write"), timeouts.get("read"), timeouts.get("pool")),
                extensions.get("sni_hostname"),
                request,
            )
        except (UsageError, UnicodeDecodeError) as error:
            raise self._library.LocalProtocolError(str(error), request=request) from error

    def _response(self, request: Any, call: TransportCall, handle: _weir.ResponseHandle, stream: Any) -> Any:
        if handle.ended != "responded" and not is_last_status(handle):
            name, text = failure_kind(handle)
            raise getattr(self._library, name)(text, request=request) from call.failed(handle)
        return self._library.Response(
            handle.status,
            headers=handle.received_headers,
            stream=self._library.ByteStream(handle.body) if handle.is_whole else stream,
            request=request,
            extensions={
                "http_version": handle.version.encode(),
                "reason_phrase": handle.reason_phrase,
                "weir": call.responded(handle),
            },
        )


def is_mocked(lib: Any, name: str, pool: str) -> bool:
    """Whether a test's tool has replaced what the library sends by, as respx and pytest-httpx do."""
    kind = lib.AsyncHTTPTransport if pool.startswith("Async") else lib.HTTPTransport
    if not getattr(kind, name).__module__.startswith(lib.__name__):
        return True
    core = sys.modules.get(lib.__name__.replace("httpx", "httpcore"))
    return core is not None and not getattr(getattr(core, pool), name).__module__.startswith("httpcore")


class BlockingTransport(TransportOptions):
    """Transport of calls that block."""

    async def handle_async_request(self, _request: Any) -> NoReturn:
        """Reject an AsyncClient."""
        raise TypeError(f"an AsyncClient needs weir.{self._library.__name__}.AsyncTransport")

    async def __aenter__(self) -> NoReturn:
        """Reject an AsyncClient."""
        await self.handle_async_request(None)

    def handle_request(self, request: Any) -> Any:
        if is_mocked(self._library, "handle_request", "ConnectionPool"):
            with self._library.HTTPTransport() as mocked:
                return mocked.handle_request(request)
        try:
            body: bytes | None = request.content
        except self._library.RequestNotRead:
            repeats = can_repeat(request.headers.get("content-length"))
            body = b"".join(request.stream) if repeats else None
        call = self._call(request, body)
        exchange = Exchange(call, None if body is not None else request.stream)
        trace = request.extensions.get("trace")
        try:
            if trace is not None:
                trace("http11.send_request_headers.started", _started(request))
            handle = exchange.outcome()
            if trace is not None and handle.status:
                trace("http11.receive_response_headers.complete", _received(handle))
        except BaseException as error:
            call.cancelled(error)
            raise
        return self._response(request, call, handle, self._body(exchange, request))

    def close(self) -> None:
        self._core.close()


class AwaitedTransport(TransportOptions):
    """Transport of calls that are awaited."""

    def handle_request(self, _request: Any) -> NoReturn:
        """Reject a Client that blocks."""
        raise TypeError(f"a Client needs weir.{self._library.__name__}.Transport")

    def __enter__(self) -> NoReturn:
        """Reject a Client that blocks."""
        self.handle_request(None)

    async def handle_async_request(self, request: Any) -> Any:
        if is_mocked(self._library, "handle_async_request", "AsyncConnectionPool"):
            async with self._library.AsyncHTTPTransport() as mocked:
                return await mocked.handle_async_request(request)
        try:
            body: bytes | None = request.content
        except self._library.RequestNotRead:
            repeats = can_repeat(request.headers.get("content-length"))
            body = b"".join([chunk async for chunk in request.stream]) if repeats else None
        call = self._call(request, body)
        exchange = AwaitedExchange(call, None if body is not None else request.stream)
        trace = request.extensions.get("trace")
        try:
            if trace is not None:
                await trace("http11.send_request_headers.started", _started(request))
            handle = await exchange.outcome()
            if trace is not None and handle.status:
                await trace("http11.receive_response_headers.complete", _received(handle))
        except BaseException as error:
            call.cancelled(error)
            raise
        return self._response(request, call, handle, self._body(exchange, request))

    async def aclose(self) -> None:
        self._core.close()


def transports_for(library: Any) -> tuple[type[BlockingTransport], type[AwaitedTransport]]:
    """Make the transports of a library, which are transports to it, and their bodies streams."""
    name = library.__name__

    def made(kind: str, bases: tuple[Any, ...], **members: Any) -> Any:
        return type(kind, bases, {"__module__": f"weir.{name}", "_library": library, **members})

    blocking = made(
        "Transport",
        (BlockingTransport, library.BaseTransport),
        _body=made("_Body", (BodyStream, library.SyncByteStream)),
        __doc__=f"""Transport of calls with a deadline, hedging, retries and a budget for these.

    >>> client = {name}.Client(transport=weir.{name}.Transport(deadline=1.0, retries=2))  # doctest: +SKIP

    `response.extensions["weir"]` is the call's `weir.CallLog`.
    """,
    )
    awaited = made(
        "AsyncTransport",
        (AwaitedTransport, library.AsyncBaseTransport),
        _body=made("_AwaitedBody", (AwaitedBodyStream, library.AsyncByteStream)),
        __doc__=f"The same for `{name}.AsyncClient`: on asyncio's thread (uvloop's, too); "
        "under trio on a thread of weir's.",
    )
    return blocking, awaited


def _started(request: Any) -> dict[str, Any]:
    """What a trace is told when a request begins: the names are httpcore's."""
    url = request.url
    parts = SimpleNamespace(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path)
    return {"request": SimpleNamespace(method=request.method.encode(), url=parts, headers=request.headers.raw)}


def _received(handle: _weir.ResponseHandle) -> dict[str, Any]:
    """What a trace is told when the head of a response is there."""
    version = handle.version.encode()
    return {"return_value": (version, handle.status, handle.reason_phrase, handle.received_headers)}
