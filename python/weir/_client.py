"""`weir.Client` and `weir.AsyncClient`: calls that have an answer in time, whatever the upstream does."""

from __future__ import annotations

import os
from collections.abc import Coroutine, Iterable
from os import PathLike, fspath
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict
from weakref import WeakSet

from weir import _weir
from weir._errors import UsageError
from weir._headers import Headers, HeaderTypes
from weir._load import Time
from weir._policy import Budget, Hedge, Retry, Success
from weir._request import Params, basic, body_of, target_of
from weir._response import Response

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

__all__ = ["AsyncClient", "Client", "Limits"]

_Path: TypeAlias = str | PathLike[str]

# So many different requests and policies of a client are kept ready.
_MOST_KNOWN = 256


class Limits(TypedDict, total=False):
    """What a call may do for its answer; a client has them for all its calls, each call for itself."""

    timeout: Time | None
    """An attempt that takes longer has failed; None for no limit. Default: 30 s."""
    deadline: Time | None
    """The whole call ends by then, with an answer or with `DeadlineExceeded`. Default: None, no deadline."""
    hedge: Hedge | Iterable[Hedge] | None
    """More copies of a call that has no answer yet: one stage or several."""
    retry: Retry | int | None
    """New attempts in place of failed ones."""
    budget: Budget | None
    """What all extra attempts may come to; None is without limit. Default: `Budget()`."""
    success: Success | None
    """When an answer is a success. Default: any but 408, 429 and 5xx; one of these is still returned if there is no
    better. With a rule of your own, a call without a success raises."""
    repeat: Literal["safe", "idempotent", "every"]
    """Which requests may be sent more than once: GET, HEAD, OPTIONS and TRACE; PUT and DELETE, too; all."""


class _Options(Limits, total=False):
    params: Params | None
    json: Any
    content: str | bytes | None
    data: Params | None
    headers: HeaderTypes | None
    auth: tuple[str, str] | None


class _Base:
    """What both clients share: options, and requests made of them."""

    def __init__(
        self,
        *,
        base_url: str = "",
        params: Params | None = None,
        headers: HeaderTypes | None = None,
        auth: tuple[str, str] | None = None,
        verify: bool | _Path = True,
        cert: _Path | tuple[_Path, _Path] | None = None,
        http2: bool = False,
        follow_redirects: Literal[False] = False,
        limit: int | None = None,
        timeout: Time | None = 30.0,
        deadline: Time | None = None,
        hedge: Hedge | Iterable[Hedge] | None = None,
        retry: Retry | int | None = None,
        budget: Budget | None = Budget(),  # noqa: B008  a frozen value
        success: Success | None = None,
        repeat: Literal["safe", "idempotent", "every"] = "safe",
    ) -> None:
        """Make a client. It connects when it has to.

        Args:
            base_url: What relative URLs are appended to.
            params: Query parameters of all requests.
            headers: Headers of all requests.
            auth: User and password for basic authentication.
            verify: Whether to check certificates; or a PEM file of those to trust, in place of the system's.
            cert: Our own certificate and its key: one PEM file with both, or two.
            http2: Whether to offer HTTP/2 over TLS.
            follow_redirects: Not offered: a redirect is an answer as any other.
            limit: The most calls at once; others wait for their turn, within their deadline.
            timeout: See `Limits`, as for all that follow.
            deadline: The whole call's.
            hedge: More copies of a call that has no answer yet.
            retry: New attempts in place of failed ones.
            budget: What all extra attempts may come to.
            success: When an answer is one.
            repeat: Which requests may be sent more than once.

        Raises:
            UsageError: A value makes no sense.
        """
        if follow_redirects:
            raise UsageError("follow_redirects: redirects are not followed; look at response.headers['location']")
        self._base_url = base_url
        self._params = params
        self._headers = Headers(headers)
        self._auth = auth
        if auth is not None:
            basic(auth)
        certificate, key = (cert, cert) if isinstance(cert, str | PathLike) else cert or (None, None)
        self._handle = _weir.ClientHandle(
            {
                "cacert": None if isinstance(verify, bool) else fspath(verify),
                "insecure": verify is False,
                "cert": certificate,
                "key": key,
                "http2": http2,
                "limit": limit,
            }
        )
        self._limits: dict[str, Any] = {
            "timeout": timeout,
            "deadline": deadline,
            "hedge": _stages(hedge),
            "retry": retry,
            "budget": budget,
            "success": success,
            "repeat": repeat,
        }
        self._policy = _weir.PolicyHandle(self._limits)
        self._policies: dict[tuple[Any, ...], _weir.PolicyHandle] = {}
        self._known: dict[tuple[str, str], _weir.RequestHandle] = {}
        self._closed = False
        _clients.add(self)

    @property
    def base_url(self) -> str:
        """What relative URLs are appended to."""
        return self._base_url

    @property
    def headers(self) -> Headers:
        """The headers of all requests; they are fixed when the client is made."""
        return self._headers

    @property
    def is_closed(self) -> bool:
        """Whether the client was closed."""
        return self._closed

    def _asked(self, method: str, url: str, options: _Options) -> _weir.RequestHandle:
        """Make a request; one without options is kept for the next time."""
        if self._closed:
            raise UsageError("the client is closed; make a new one")
        if not isinstance(url, str):
            raise TypeError(f"url: text, not {type(url).__name__}")
        given: dict[str, Any] = {**options}
        params, auth = given.pop("params", None), given.pop("auth", None)
        body, lines = body_of(given.pop("json", None), given.pop("content", None), given.pop("data", None))
        headers = given.pop("headers", None)
        target, user = target_of(self._base_url, url, self._params, params)
        if (user := auth or user or self._auth) is not None:
            lines["authorization"] = basic(user)
        lines = {"accept": "*/*", "accept-encoding": "gzip, deflate", "user-agent": _AGENT, **lines}
        pairs = _merged(lines, self._headers, headers)
        asked = self._handle.request(self._policy_for(given), method.upper(), target, pairs, body)
        if not options:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            self._known[method, url] = asked
        return asked

    def _policy_for(self, given: dict[str, Any]) -> _weir.PolicyHandle:
        if not given:
            return self._policy
        if "hedge" in given:
            given["hedge"] = _stages(given["hedge"])
        key = tuple(sorted(given.items(), key=lambda item: item[0]))
        try:
            known = self._policies.get(key)
        except TypeError:
            return self._new_policy(given)
        if known is None:
            if len(self._policies) >= _MOST_KNOWN:
                self._policies.clear()
            known = self._policies[key] = self._new_policy(given)
        return known

    def _new_policy(self, given: dict[str, Any]) -> _weir.PolicyHandle:
        unknown = given.keys() - self._limits.keys()
        if unknown:
            raise TypeError(f"{sorted(unknown)[0]!r} is no option of a call")
        return _weir.PolicyHandle(self._limits | given)

    def _close(self) -> None:
        if self._closed:
            return
        self._closed = True
        # A connection is closed once nothing holds its upstream: neither requests nor policies.
        self._known.clear()
        self._policies.clear()
        self._policy = _weir.PolicyHandle(self._limits)
        self._handle.close()
        _weir.release_connections()

    def __del__(self) -> None:
        """Close the client when nothing refers to it any more."""
        # Without the attribute it was never made; while the interpreter ends, its modules may be gone.
        if not getattr(self, "_closed", True) and _weir is not None:
            self._close()

    def _forked(self) -> None:
        """Forget what belongs to the parent of this process."""
        self._known.clear()


class Client(_Base):
    """Makes calls and waits for their answers. Threads may share it; each has its own connections.

    >>> with weir.Client(base_url="http://localhost:8080", hedge=weir.Hedge(after=0.3, copies=2), deadline=1) as client:
    ...     time = client.get("/api/work").json()["time"]

    The GIL is released while it waits, and Ctrl-C works. There are no proxies, cookies and redirects. Headers of a call
    replace the client's of the same name; an empty value leaves that one out.
    """

    __module__ = "weir"

    def request(self, method: str, url: str, **options: Unpack[_Options]) -> Response:
        """Make a call and wait for its answer, whatever its status.

        Args:
            method: Such as ``"GET"``.
            url: Where to; absolute, or appended to the client's `base_url`.
            options: ``params``, ``headers`` and ``auth`` as the client has them, for this call; a body as ``json``,
                ``content`` (text or bytes) or ``data`` (a form's fields); and all of `Limits`.

        Raises:
            UsageError: A value makes no sense.
            DeadlineExceeded: The deadline came first.
            AllAttemptsFailed: No attempt was a success, and there is no answer (or, with `success`, no right one).
        """
        asked = self._known.get((method, url)) if not options else None
        return Response(_weir.wait(asked or self._asked(method, url, options)))

    def get(self, url: str, **options: Unpack[_Options]) -> Response:
        """Make a GET call; see `request`."""
        return self.request("GET", url, **options)

    def head(self, url: str, **options: Unpack[_Options]) -> Response:
        """Make a HEAD call; see `request`."""
        return self.request("HEAD", url, **options)

    def options(self, url: str, **options: Unpack[_Options]) -> Response:
        """Make an OPTIONS call; see `request`."""
        return self.request("OPTIONS", url, **options)

    def post(self, url: str, **options: Unpack[_Options]) -> Response:
        """Make a POST call; see `request`."""
        return self.request("POST", url, **options)

    def put(self, url: str, **options: Unpack[_Options]) -> Response:
        """Make a PUT call; see `request`."""
        return self.request("PUT", url, **options)

    def patch(self, url: str, **options: Unpack[_Options]) -> Response:
        """Make a PATCH call; see `request`."""
        return self.request("PATCH", url, **options)

    def delete(self, url: str, **options: Unpack[_Options]) -> Response:
        """Make a DELETE call; see `request`."""
        return self.request("DELETE", url, **options)

    def close(self) -> None:
        """Take no more calls, and close this thread's idle connections; another thread's go with its next call.

        A client that is let go of, and never closed, is closed with its last reference.
        """
        self._close()

    def __enter__(self) -> Self:
        """Hand out the client."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()


class AsyncClient(_Base):
    """Makes calls whose answers are awaited. Event loops may share it; each has its own connections.

    >>> async with weir.AsyncClient(hedge=weir.Hedge(after=0.3, copies=2), deadline=1) as client:
    ...     answers = await asyncio.gather(*(client.get(url) for url in urls))

    It works on the thread of the asyncio loop (uvloop's, too) and needs no other. A call that is cancelled is over at
    once. Otherwise all is as with `Client`.
    """

    __module__ = "weir"

    async def request(self, method: str, url: str, **options: Unpack[_Options]) -> Response:
        """Make a call; see `Client.request`."""
        asked = self._known.get((method, url)) if not options else None
        answer = _weir.begin(asked or self._asked(method, url, options))
        try:
            return Response(await answer)
        except BaseException:
            _weir.abandon(answer)
            raise

    def get(self, url: str, **options: Unpack[_Options]) -> Coroutine[Any, Any, Response]:
        """Make a GET call; see `Client.request`."""
        return self.request("GET", url, **options)

    def head(self, url: str, **options: Unpack[_Options]) -> Coroutine[Any, Any, Response]:
        """Make a HEAD call; see `Client.request`."""
        return self.request("HEAD", url, **options)

    def options(self, url: str, **options: Unpack[_Options]) -> Coroutine[Any, Any, Response]:
        """Make an OPTIONS call; see `Client.request`."""
        return self.request("OPTIONS", url, **options)

    def post(self, url: str, **options: Unpack[_Options]) -> Coroutine[Any, Any, Response]:
        """Make a POST call; see `Client.request`."""
        return self.request("POST", url, **options)

    def put(self, url: str, **options: Unpack[_Options]) -> Coroutine[Any, Any, Response]:
        """Make a PUT call; see `Client.request`."""
        return self.request("PUT", url, **options)

    def patch(self, url: str, **options: Unpack[_Options]) -> Coroutine[Any, Any, Response]:
        """Make a PATCH call; see `Client.request`."""
        return self.request("PATCH", url, **options)

    def delete(self, url: str, **options: Unpack[_Options]) -> Coroutine[Any, Any, Response]:
        """Make a DELETE call; see `Client.request`."""
        return self.request("DELETE", url, **options)

    async def aclose(self) -> None:
        """Take no more calls, and close this loop's idle connections; another loop's go within seconds."""
        self._close()

    async def __aenter__(self) -> Self:
        """Hand out the client."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        await self.aclose()


_AGENT = f"weir/{_weir.__version__}"
_clients: WeakSet[_Base] = WeakSet()


def _stages(hedge: Hedge | Iterable[Hedge] | None) -> Hedge | tuple[Hedge, ...] | None:
    return hedge if hedge is None or isinstance(hedge, Hedge) or not isinstance(hedge, Iterable) else tuple(hedge)


def _merged(ours: dict[str, str], client: Headers, call: HeaderTypes | None) -> list[tuple[bytes, bytes]]:
    """Put headers together: a call's replace the client's, and these ours; an empty value leaves one out."""
    found: dict[str, list[str]] = {name: [value] for name, value in ours.items()}
    for headers in (client, Headers(call)):
        for name in headers:
            found[name] = headers.get_list(name)
    pairs = ((name, value) for name, values in found.items() for value in values if value)
    try:
        return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in pairs]
    except UnicodeEncodeError as error:
        raise UsageError(f"headers: {error.object!r} holds characters that no header can; encode them") from error


def _forked() -> None:
    _weir.forked()
    for client in list(_clients):
        client._forked()


os.register_at_fork(after_in_child=_forked)
