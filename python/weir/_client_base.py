"""Options and prepared requests of clients, common to blocking and awaited ones."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeAlias, TypedDict
from weakref import WeakSet

from weir import _weir
from weir._errors import UsageError
from weir._headers import Headers, HeaderTypes, shown_name
from weir._httpx_arguments import check_httpx_types, unknown_argument, unknown_attribute
from weir._policy import Budget, Hedge, Retry, Success
from weir._request import Params, basic, body_of, is_absolute, target_of, without_secrets
from weir._shared_budget import SharedBudget
from weir._time import Time

if TYPE_CHECKING:
    from typing_extensions import Never

__all__ = ["BaseClient", "CallOptions", "RequestOptions"]

_Path: TypeAlias = str | PathLike[str]

# Maximum prepared requests, and maximum policies, that a client caches.
_MAX_CACHED = 256


class CallOptions(TypedDict, total=False):
    """Options of a call: timeouts, hedging, retries. Those of a client are the defaults of its calls.

    Attributes:
        timeout: Timeout of each attempt, with its whole response; None is no limit. Default: 30 s.
        deadline: Deadline of the whole call, after which it raises `DeadlineExceeded`. Default: None, no deadline.
        hedge: Hedge stages: further attempts beside a slow one. Default: None.
        retries: Maximum retries, or a `Retry`: new attempts in place of failed ones. Default: None.
        budget: Budget of all extra attempts of a client, or a `SharedBudget`; None is no limit. Default: `Budget()`.
        success: Rules of a successful response. Default: any status but 408, 429 and 5xx; without a success the last
            response is returned. With rules of your own, a call without a success raises.
        retry_methods: Methods that may be sent more than once: ``"safe"`` (GET, HEAD, OPTIONS, TRACE),
            ``"idempotent"`` (also PUT and DELETE) or ``"all"``. Default: ``"safe"``.
        max_response: Maximum body of a response in bytes, as received and decoded, of each attempt; a longer one raises
            `ResponseTooLarge`. None is no limit. Default: 64 MiB.
    """

    timeout: Time | None
    deadline: Time | None
    hedge: Hedge | Iterable[Hedge] | None
    retries: Retry | int | None
    budget: Budget | SharedBudget | None
    success: Success | None
    retry_methods: Literal["safe", "idempotent", "all"]
    max_response: int | None


class RequestOptions(CallOptions, total=False):
    """Arguments of `Client.request`."""

    params: Params | None
    json: Any
    content: str | bytes | None
    data: Params | None
    headers: HeaderTypes | None
    auth: tuple[str, str] | None


class BaseClient:
    """Options and prepared requests, common to both clients."""

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
        max_concurrency: int | None = None,
        timeout: Time | None = 30.0,
        deadline: Time | None = None,
        hedge: Hedge | Iterable[Hedge] | None = None,
        retries: Retry | int | None = None,
        budget: Budget | SharedBudget | None = Budget(),  # noqa: B008  a frozen value
        success: Success | None = None,
        retry_methods: Literal["safe", "idempotent", "all"] = "safe",
        max_response: int | None = 64 * 2**20,
        **unknown: Never,
    ) -> None:
        """Create a client; connections are opened by calls.

        Args:
            base_url: Prefix of relative URLs. An absolute URL of another origin (scheme, host or port) gets neither
                `auth` nor headers and params with secret names, such as Authorization, Cookie or X-Api-Key.
            params: Query parameters of all requests.
            headers: Headers of all requests.
            auth: User and password for basic authentication.
            verify: Verification of certificates; or a PEM file of CA certificates to trust, instead of the system's.
            cert: Client certificate and its private key: one PEM file with both, or two.
            http2: HTTP/2 over TLS, where the server supports it.
            follow_redirects: Not supported; a redirect is a response like any other.
            max_concurrency: Maximum concurrent calls; others wait, within their deadline. Default: unlimited.
            timeout: Timeout of each attempt; this and the following are explained in `CallOptions`.
            deadline: Deadline of each call.
            hedge: Hedge stages.
            retries: Maximum retries, or a `Retry`.
            budget: Budget of all extra attempts.
            success: Rules of a successful response.
            retry_methods: Methods that may be sent more than once.
            max_response: Maximum body of a response in bytes.
            unknown: None; an argument of httpx that is not here raises a `TypeError` that names what is.

        Raises:
            UsageError: A value is invalid.
            TypeError: An argument is unknown, or of another type.
        """
        if unknown:
            raise unknown_argument(f"weir.{type(self).__name__}", unknown)
        check_httpx_types(base_url, auth, verify, cert, timeout)
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
                "max_concurrency": max_concurrency,
            }
        )
        self._defaults: dict[str, Any] = {
            "timeout": timeout,
            "deadline": deadline,
            "hedge": _stages(hedge),
            "retries": retries,
            "budget": budget,
            "success": success,
            "retry_methods": retry_methods,
            "max_response": max_response,
        }
        self._policy = _weir.PolicyHandle(self._defaults)
        self._policies: dict[tuple[Any, ...], _weir.PolicyHandle] = {}
        self._prepared: dict[tuple[str, str], _weir.RequestHandle] = {}
        self._closed = False
        _clients.add(self)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            raise unknown_attribute(f"weir.{type(self).__name__}", name)

    @property
    def base_url(self) -> str:
        """Prefix of relative URLs."""
        return self._base_url

    @property
    def headers(self) -> Headers:
        """Headers of all requests; fixed when the client is made."""
        return self._headers

    @property
    def is_closed(self) -> bool:
        """Whether the client was closed."""
        return self._closed

    def _prepare(self, method: str, url: str, options: RequestOptions) -> _weir.RequestHandle:
        """Prepare a request; one without options is cached."""
        if self._closed:
            raise UsageError("the client is closed; make a new one")
        if not isinstance(url, str):
            raise TypeError(f"url: text, not {type(url).__name__}")
        given: dict[str, Any] = {**options}
        params, auth = given.pop("params", None), given.pop("auth", None)
        body, lines = body_of(given.pop("json", None), given.pop("content", None), given.pop("data", None))
        headers = given.pop("headers", None)
        shared: BaseClient | _Uncredentialed = self
        if self._base_url and is_absolute(url) and not _weir.shares_credentials(self._base_url, url):
            shared = _Uncredentialed(self)
        target, of_url = target_of(self._base_url, url, shared._params, params)
        user = auth or (None if of_url else shared._auth)
        if authorization := basic(user) if user else of_url:
            lines["authorization"] = authorization
        lines = {"accept": "*/*", "accept-encoding": "gzip, deflate", "user-agent": _AGENT, **lines}
        pairs = _merged(lines, shared._headers, headers)
        prepared = self._handle.request(self._policy_for(given), method.upper(), target, pairs, body)
        if not options:
            if len(self._prepared) >= _MAX_CACHED:
                self._prepared.clear()
            self._prepared[method, url] = prepared
        return prepared

    def _policy_for(self, given: dict[str, Any]) -> _weir.PolicyHandle:
        if not given:
            return self._policy
        if "hedge" in given:
            given["hedge"] = _stages(given["hedge"])
        key = tuple(sorted(given.items(), key=lambda item: item[0]))
        try:
            cached = self._policies.get(key)
        except TypeError:
            return self._new_policy(given)
        if cached is None:
            if len(self._policies) >= _MAX_CACHED:
                self._policies.clear()
            cached = self._policies[key] = self._new_policy(given)
        return cached

    def _new_policy(self, given: dict[str, Any]) -> _weir.PolicyHandle:
        unknown = given.keys() - self._defaults.keys()
        if unknown:
            raise unknown_argument("", {name: given[name] for name in unknown}, of_call=True)
        return _weir.PolicyHandle(self._defaults | given)

    def _close(self) -> None:
        if self._closed:
            return
        self._closed = True
        # A connection is closed once neither requests nor policies hold its upstream.
        self._prepared.clear()
        self._policies.clear()
        self._policy = _weir.PolicyHandle(self._defaults)
        self._handle.close()
        _weir.release_connections()

    def __del__(self) -> None:
        """Close a client without references."""
        # The attribute is missing if __init__ failed, and the module if the interpreter is shutting down.
        if not getattr(self, "_closed", True) and _weir is not None:
            self._close()

    def _forked(self) -> None:
        """Drop prepared requests of the parent process."""
        self._prepared.clear()


class _Uncredentialed:
    """Defaults of a client for other origins than that of its base URL, to which its credentials belong."""

    def __init__(self, client: BaseClient) -> None:
        self._auth = None
        self._params = without_secrets(client._params)
        pairs = client._headers.multi_items()
        self._headers = Headers([(name, value) for name, value in pairs if not _weir.is_secret_name(name)])


_AGENT = f"weir/{_weir.__version__}"
_clients: WeakSet[BaseClient] = WeakSet()


def _stages(hedge: Hedge | Iterable[Hedge] | None) -> Hedge | tuple[Hedge, ...] | None:
    return hedge if hedge is None or isinstance(hedge, Hedge) or not isinstance(hedge, Iterable) else tuple(hedge)


def _merged(defaults: dict[str, str], client: Headers, call: HeaderTypes | None) -> list[tuple[bytes, bytes]]:
    """Merge headers: a call's replace the client's, and these the defaults; an empty value removes one."""
    found: dict[str, list[str]] = {name: [value] for name, value in defaults.items()}
    for headers in (client, Headers(call)):
        for name in headers:
            found[name] = headers.get_list(name)
    pairs = ((name, value) for name, values in found.items() for value in values if value)
    return [(_latin(name, name), _latin(name, value)) for name, value in pairs]


def _latin(name: str, text: str) -> bytes:
    with suppress(UnicodeEncodeError):
        return text.encode("latin-1")
    # The value may be a secret, which the cause would show, too.
    raise UsageError(f"headers: {shown_name(name)} has characters outside latin-1; encode them")


def _forked() -> None:
    for client in list(_clients):
        client._forked()


os.register_at_fork(after_in_child=_forked)
