"""`self.client`: requests in the manner of the library requests, sent by weir's loop."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from typing import Any

from weir import _request_form as form
from weir import _weir
from weir._locust.exception import RunOver
from weir._locust.session_parts import SessionCookies, SessionHeaders
from weir._locust.socket import TaskWebSocket, opened
from weir._task_response import exception_of
from weir._task_socket import block_of, http_form

__all__ = ["HttpSession"]

_Request = _weir.ScriptRequest
_quick_request = _weir.quick_request

_LENGTHS_GIVEN = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH"})
"""Methods whose requests without a body have the same Content-Length in weir and in the library requests, or none."""


class HttpSession:
    """Client of a user: headers, cookies, and a method for each method of HTTP."""

    def __init__(self, base_url: str, request_event: Any = None, user: Any = None, **_: Any) -> None:
        """Make a client whose paths follow a URL; a file may make further ones for its user."""
        self.base_url = base_url
        self.user = user
        self.request_event = request_event or user._weir_player.environment.events.request
        self.request_name: str | None = None
        self.auth: Any = None
        self.params: Any = None
        self.verify: Any = True
        self.cert: Any = None
        self.proxies: Any = {}
        self.trust_env = False
        self.stream = False
        self.max_redirects = 30
        self.hooks: dict[str, list[Any]] = {"response": []}
        self._player = user._weir_player
        environment = self._player.environment
        home = environment.host or user.host or ""
        self._session = _weir.ScriptSession(base_url, "", self._player.given_lines, home)
        self._headers = SessionHeaders(self._session, self._player.headers)
        self._cookies = SessionCookies(self._session)
        self._hook = environment.events.request
        self._is_over = False
        self._is_fast = False

    @property
    def headers(self) -> MutableMapping[str, str]:
        """Headers of all requests."""
        return self._headers

    @headers.setter
    def headers(self, headers: Mapping[str, str]) -> None:
        self._headers = SessionHeaders(self._session, headers)

    @property
    def cookies(self) -> SessionCookies:
        """Cookies of the user."""
        return self._cookies

    @cookies.setter
    def cookies(self, cookies: Any) -> None:
        self._cookies.clear()
        self._cookies.update(cookies)

    @property
    def cookiejar(self) -> SessionCookies:
        """Cookies of the user, by the name that FastHttpUser has."""
        return self._cookies

    def mount(self, prefix: str, adapter: Any) -> None:
        """Ignore an adapter: connections are weir's own."""

    def close(self) -> None:
        """Do nothing: connections are weir's own."""

    @contextmanager
    def rename_request(self, name: str) -> Iterator[None]:
        """Count the requests of a block under a name."""
        self.request_name = name
        try:
            yield
        finally:
            self.request_name = None

    def _quick(self, method: str, url: Any, given: dict[str, Any]) -> Any:
        """Send a request whose arguments need no preparation here; None if it is another one."""
        if (
            self._is_over
            or self.params
            or self.auth
            or self.request_name
            or self.hooks["response"]
            or self._hook.has_listeners
        ):
            return None
        request = _quick_request(self._session, method, url, given, None, self._is_fast)
        return None if request is None else self._player.main.switch(request)

    def get(self, url: str, **given: Any) -> Any:
        """Send a GET."""
        response = self._quick("GET", url, given)
        return self.request("GET", url, **given) if response is None else response

    def post(self, url: str, data: Any = None, json: Any = None, **given: Any) -> Any:
        """Send a POST."""
        given["data"], given["json"] = data, json
        response = self._quick("POST", url, given)
        return self.request("POST", url, **given) if response is None else response

    def put(self, url: str, data: Any = None, **given: Any) -> Any:
        """Send a PUT."""
        return self.request("PUT", url, data=data, **given)

    def patch(self, url: str, data: Any = None, **given: Any) -> Any:
        """Send a PATCH."""
        return self.request("PATCH", url, data=data, **given)

    def delete(self, url: str, **given: Any) -> Any:
        """Send a DELETE."""
        return self.request("DELETE", url, **given)

    def head(self, url: str, **given: Any) -> Any:
        """Send a HEAD; redirects are not followed, as in requests."""
        given.setdefault("allow_redirects", False)
        return self.request("HEAD", url, **given)

    def options(self, url: str, **given: Any) -> Any:
        """Send an OPTIONS."""
        return self.request("OPTIONS", url, **given)

    def request(  # noqa: PLR0917  the arguments of requests, in their order
        self,
        method: str,
        url: str,
        params: Any = None,
        data: Any = None,
        headers: Any = None,
        cookies: Any = None,
        files: Any = None,
        auth: Any = None,
        timeout: Any = None,
        allow_redirects: bool = True,
        proxies: Any = None,
        hooks: Any = None,
        stream: Any = None,
        verify: Any = None,
        cert: Any = None,
        json: Any = None,
        *,
        name: str | None = None,
        catch_response: bool = False,
        context: Mapping[str, Any] | None = None,
        **unknown: Any,
    ) -> Any:
        """Send a request and wait for its response, which has status 0 if there is none."""
        if unknown:
            raise TypeError(f"self.client.{method.lower()}: {', '.join(unknown)} is not supported by weir")
        body, kind = form.body_of(json, data, files)
        if self.params or params:
            url = form.with_params(form.with_params(url, self.params), params)
        if " " in url:
            # Spaces of the query as well: a plus sign stands for itself here.
            url = url.replace(" ", "%20")
        if self._is_fast:
            headers, kind = _fast_headers(headers, json), _fast_kind(kind, body, data)
        elif body is None and method.upper() not in _LENGTHS_GIVEN:
            headers = {"Content-Length": "0", **(headers or {})}
        own = form.headers_of(headers, kind, auth or self.auth, cookies)
        name = name or self.request_name
        timeout_s = None if timeout is None else form.timeout_s(timeout)
        request = _Request(
            self._session, method.upper(), url, name, own, body, timeout_s, allow_redirects, True, catch_response
        )
        if self._is_over:
            raise RunOver("the run is over, nothing is sent any more")
        hook = self._hook
        if not hook.has_listeners and not hooks and not self.hooks["response"]:
            return self._player.main.switch(request)
        started = time.time()
        response = self._player.main.switch(request)
        for called in (*self.hooks["response"], *_listed((hooks or {}).get("response"))):
            called(response)
        if hook.has_listeners:
            self._tell(hook, response, name, context, started, is_caught=catch_response)
        return response

    def _tell(
        self, hook: Any, response: Any, name: str | None, context: Any, started: float, *, is_caught: bool
    ) -> None:
        """Tell listeners of a request; of one with `catch_response` at the end of its block."""

        def tell() -> None:
            hook.fire(
                request_type=response.request.method,
                name=name or response.history[0].target if response.history else name or response.target,
                response_time=response.elapsed.total_seconds() * 1000,
                response_length=response.raw_length,
                response=response,
                context={**self.user.context(), **(context or {})},
                exception=exception_of(response),
                start_time=started,
                url=response.url,
            )

        if is_caught:
            response.set_on_leave(tell)
        else:
            tell()

    def websocket(
        self,
        url: str,
        *,
        name: str | None = None,
        params: Any = None,
        headers: Any = None,
        cookies: Any = None,
        auth: Any = None,
        subprotocols: str | Sequence[str] = (),
        timeout: Any = None,
    ) -> TaskWebSocket:
        """Open a WebSocket, for a `with` statement or until it is closed.

        Its messages are requests as those of `weir.User.websocket`; Locust itself has no such method.
        """
        if self._is_over:
            raise RunOver("the run is over, nothing is sent any more")
        name = name or self.request_name or f"WS {url}"
        url = form.with_params(form.with_params(http_form(url), self.params), params)
        own = form.headers_of({"Connection": None, **(headers or {})}, None, auth or self.auth, cookies)
        timeout_s = None if timeout is None else form.timeout_s(timeout)
        request = _Request(self._session, "GET", url, name, own, None, timeout_s, False, False, False)
        return opened(block_of(request, name, subprotocols, timeout_s), self._player)

    @contextmanager
    def _rest(self, method: str, url: str, headers: Any, **given: Any) -> Iterator[Any]:
        kind = {} if "files" in given else {"Content-Type": "application/json"}
        headers = {**kind, "Accept": "application/json", **(headers or {})}
        given.pop("catch_response", None)
        with self.request(method, url, headers=headers, catch_response=True, **given) as response:
            response.js = None
            if response.failure_kind is not None:
                response.failure(response.failure_kind)
            elif response.text:
                try:
                    response.js = response.json()
                except ValueError as error:
                    response.failure(f"the body is not JSON: {error}: {response.text[:250]}")
            try:
                yield response
            except AssertionError as error:
                response.failure(str(error) or f"assertion failed in line {_line(error)}")
            except Exception as error:
                if isinstance(error, RunOver):
                    raise
                response.failure(f"{type(error).__name__}: {error} in line {_line(error)}")


def _line(error: BaseException) -> int:
    """Line of the locustfile that raised an exception."""
    tb = error.__traceback__
    while tb is not None and tb.tb_frame.f_code.co_filename == __file__:
        tb = tb.tb_next
    return tb.tb_lineno if tb is not None else 0


def _fast_headers(headers: Any, json: Any) -> Any:
    """Headers of a request, as FastHttpUser sends them."""
    if json is None:
        return headers
    found = dict(headers or ())
    return found if any(name.lower() == "accept" for name in found) else {**found, "Accept": "application/json"}


def _fast_kind(kind: str | None, body: bytes | None, data: Any) -> str | None:
    """Type of a body, as FastHttpUser sends it: text and bytes have one."""
    if kind == "application/x-www-form-urlencoded":
        return f"{kind}; charset=utf-8"
    if kind is None and body is not None:
        return "text/plain; charset=utf-8" if isinstance(data, str) else "application/octet-stream"
    return kind


def _listed(hooks: Any) -> list[Any]:
    return [] if hooks is None else list(hooks) if isinstance(hooks, list | tuple) else [hooks]
