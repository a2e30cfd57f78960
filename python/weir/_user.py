"""`weir.User`: what a user of a load does, in Python."""

from __future__ import annotations

import types
from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from weir import _grpc_call, _weir
from weir import _request_form as form
from weir._errors import UsageError
from weir._task import tasks_of
from weir._task_socket import WebSocketBlock, block_of, http_form
from weir._task_stream import StreamBlock
from weir._think import think_time
from weir._time import Time

if TYPE_CHECKING:
    import random

    from weir._grpc_call import GrpcResponse
    from weir._weir import ScriptResponse

__all__ = ["User", "sleep"]

_Request = _weir.ScriptRequest
_quick_request = _weir.quick_request


@types.coroutine
def _exchange(request: object) -> Generator[object, ScriptResponse, ScriptResponse]:
    return (yield request)


@types.coroutine
def sleep(seconds: float) -> Generator[float, None, None]:
    """Wait within a task of a `User`; the other users go on.

    Args:
        seconds: Length of the wait.
    """
    yield float(seconds)


class _UserMeta(type):
    def __new__(cls, name: str, bases: tuple[type, ...], members: dict[str, Any]) -> _UserMeta:
        members["tasks"] = tasks_of(bases, members)
        members.setdefault("abstract", False)
        made: Any = super().__new__(cls, name, bases, members)
        # A class that sends in its own way does so by each of its methods.
        made._weir_has_own_request = getattr(made.request, "__module__", None) != __name__
        return made  # type: ignore[no-any-return]


class User(metaclass=_UserMeta):
    """User of a load: a class with tasks, of which each user does one after the other.

    Each user is an object of the class, and has cookies and a connection of its own. A task is an iteration of the
    load: it is chosen at random by weight, and `think` follows it. All tasks run on one thread, driven by the
    generator's loop and not by asyncio: a task awaits its requests and `weir.sleep`.

    Attributes:
        host: URL before the paths of requests; the command line's URL stands in its place.
        think: Wait after each task: seconds, ``"500ms"``, ``"1s..3s"``, ``"exponential 2s"``, or a method that returns
            seconds. In the open loop there is none, since the rate decides when a task begins.
        weight: Proportion of users that have this class.
        fixed_count: Number of users that have this class, in place of a weight.
        headers: Headers of all requests.
        timeout: Timeout of a request in seconds; default: that of the load.
        proto: File, or files, that describe the services of a host of gRPC; without them its reflection is asked.
        proto_path: Folder, or folders, of these files and of what they import.
        protoset: File with a descriptor set, in place of `proto`.

    >>> class Shopper(weir.User):
    ...     think = "1s..3s"
    ...
    ...     async def on_start(self):
    ...         await self.post("/login", json={"name": "ada"})
    ...
    ...     @weir.task(3)
    ...     async def browse(self):
    ...         r = await self.get("/items", name="items")
    ...         r.check(len(r.json()) > 0, "no items")
    """

    __module__ = "weir"

    tasks: ClassVar[list[Any]]
    abstract = True
    host: str | None = None
    think: Time | str | Callable[..., float] | None = None
    weight: float = 1
    fixed_count: int = 0
    headers: Mapping[str, str] | Iterable[tuple[str, str]] = ()
    timeout: float | None = None
    proto: Any = None
    proto_path: Any = None
    protoset: Any = None

    number: int
    """Number of the user, from 0."""
    random: random.Random
    """Random choices of the user, the same in each run with the same seed."""
    _weir_has_own_request: ClassVar[bool]
    _weir_session: _weir.ScriptSession
    _weir_random: Any
    _weir_stream: StreamBlock | None = None
    _weir_calls: _weir.CallSchemas | None = None
    session: _weir.ScriptSession
    """URL before paths, and cookies."""

    async def on_start(self) -> None:
        """Prepare a user before its first task, such as a login. Its requests are counted."""

    async def on_stop(self) -> None:
        """Clean up after the last task, such as a logout. Its requests are counted; after Ctrl-C none is sent."""

    def _weir_quick(self, method: str, url: str, options: dict[str, Any]) -> Awaitable[ScriptResponse] | None:
        """Send a request whose arguments need no preparation here; None if it is another one."""
        if self._weir_has_own_request:
            return None
        request = _quick_request(self._weir_session, method, url, options, self.timeout)
        return None if request is None else _exchange(request)

    def get(self, url: str, **options: Any) -> Awaitable[ScriptResponse]:
        """Send a GET; see `request`."""
        return self._weir_quick("GET", url, options) or self.request("GET", url, **options)

    def post(self, url: str, **options: Any) -> Awaitable[ScriptResponse]:
        """Send a POST; see `request`."""
        return self._weir_quick("POST", url, options) or self.request("POST", url, **options)

    def put(self, url: str, **options: Any) -> Awaitable[ScriptResponse]:
        """Send a PUT; see `request`."""
        return self._weir_quick("PUT", url, options) or self.request("PUT", url, **options)

    def patch(self, url: str, **options: Any) -> Awaitable[ScriptResponse]:
        """Send a PATCH; see `request`."""
        return self._weir_quick("PATCH", url, options) or self.request("PATCH", url, **options)

    def delete(self, url: str, **options: Any) -> Awaitable[ScriptResponse]:
        """Send a DELETE; see `request`."""
        return self._weir_quick("DELETE", url, options) or self.request("DELETE", url, **options)

    def head(self, url: str, **options: Any) -> Awaitable[ScriptResponse]:
        """Send a HEAD; see `request`."""
        return self._weir_quick("HEAD", url, options) or self.request("HEAD", url, **options)

    def options(self, url: str, **options: Any) -> Awaitable[ScriptResponse]:
        """Send an OPTIONS; see `request`."""
        return self._weir_quick("OPTIONS", url, options) or self.request("OPTIONS", url, **options)

    def request(
        self,
        method: str,
        url: str,
        *,
        name: str | None = None,
        params: Any = None,
        headers: Any = None,
        json: Any = None,
        data: Any = None,
        files: Any = None,
        cookies: Any = None,
        auth: Any = None,
        timeout: Any = None,
        allow_redirects: bool = True,
        catch: bool = False,
    ) -> Awaitable[ScriptResponse]:
        """Send a request, and wait for its response.

        Args:
            method: Method.
            url: Path after `host`, or an absolute URL.
            name: Name of the step that the request is counted under. Default: method and URL as they stand here,
                without `params`.
            params: Query: a mapping, pairs or text.
            headers: Headers; they replace those of the class, None removes one.
            json: Body as an object for `json.dumps`.
            data: Body: a mapping or pairs for a form, text or bytes.
            files: Files of a multipart form, as in the library requests.
            cookies: Cookies beside those that the user has.
            auth: User and password for basic authentication.
            timeout: Timeout in seconds.
            allow_redirects: Whether redirects are followed, up to 30 in a row. Each is a request of the step.
            catch: Whether a request without a response is a response of status 0, and not `NoResponse`.

        Returns:
            The response: `status`, `headers`, `text`, `json()`, `content`, `elapsed`, `url`, `ok`; `check(condition,
            reason)`, `success()` and `failure(reason)` decide before the next request whether it counts as a success.

        Raises:
            NoResponse: There is no response: connection, timeout or protocol.
        """
        content = (name, params, headers, json, data, files, cookies, auth)
        return _exchange(self._weir_form(method, url, form.RequestParts(*content, timeout, allow_redirects, catch)))

    async def grpc(
        self,
        method: str,
        message: object = None,
        *,
        metadata: Mapping[str, str] | None = None,
        name: str | None = None,
        timeout: float | None = None,
    ) -> GrpcResponse:
        """Call a method of gRPC of a host such as ``grpc://localhost:50051``, and wait for its response.

        Args:
            method: Method: ``"package.Service/Method"``.
            message: Message as an object for `json.dumps`, or as JSON; of a method that takes several, a list of them.
            metadata: Metadata; values of names with ``-bin`` are Base64. ``{"grpc-encoding": "gzip"}`` compresses the
                messages.
            name: Name of the step that the call is counted under. Default: the method.
            timeout: Timeout in seconds, which the server has as well.

        Returns:
            The response: `status`, `message`, `ok`, `json()`, `messages`, `metadata`, `elapsed`; `check(condition,
            reason)`, `success()` and `failure(reason)` as other responses have.

        Raises:
            NoResponse: There is no response with a status: connection, timeout or protocol.
            UsageError: The message is not of its type, or there is no such method.
        """
        if self._weir_calls is None:
            raise UsageError("self.grpc() is for a host of gRPC; write host = 'grpc://localhost:50051'")
        own = [(str(field), str(value)) for field, value in (metadata or {}).items()]
        body = self._weir_calls.encode(method, _grpc_call.text_of(message), own)
        fields = _grpc_call.fields_of(metadata, self.timeout if timeout is None else timeout)
        parts = form.RequestParts(name=name or method, headers=fields, data=body, timeout=timeout)
        request = self._weir_form("POST", f"/{method.lstrip('/')}", parts)
        return _grpc_call.GrpcResponse(await _exchange(request), self._weir_calls, method)

    def stream(self, method: str, url: str, **options: Any) -> StreamBlock:
        """Send a request whose response is read as a stream of events, within a block.

        The times of its events are recorded as those of `weir load --stream`. What is left of the response at the end
        of the block is not read; a task sends no other request within it.

        Args:
            method: Method.
            url: Path after `host`, or an absolute URL.
            options: Those of `request`, but for `catch`.

        Returns:
            A block for ``async with``. Its response has what others have, but for a body, and `events()`.

        Raises:
            NoResponse: There is no response; or, from `events()`, it breaks off.

        >>> class Reader(weir.User):
        ...     @weir.task
        ...     async def read(self):
        ...         async with self.stream("GET", "/events") as r:
        ...             async for event in r.events():
        ...                 if event.data == "[DONE]":
        ...                     break
        """
        return StreamBlock(self, self._weir_form(method, url, form.RequestParts(**options), is_streamed=True))

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
    ) -> WebSocketBlock:
        """Open a WebSocket, within a block or until it is closed.

        The upgrade is a request of a step of its own. A message that the task sends is a request as well, and the first
        message that comes behind it is its response.

        Args:
            url: Path after `host`, or a URL of ``ws://`` or ``wss://``.
            name: Name of the step of the upgrade. Default: "WS" and the URL as it stands here.
            params: Query: a mapping, pairs or text.
            headers: Headers of the upgrade.
            cookies: Cookies beside those that the user has.
            auth: User and password for basic authentication.
            subprotocols: Subprotocols that are offered, of which the service has to select one.
            timeout: Timeout of the upgrade, and of `WebSocket.receive`, in seconds. Default: that of the class, or 30.

        Returns:
            A block for ``async with``, or what to await. Its WebSocket has `send()`, `receive()`, ``async for`` over
            messages, and `close()`.

        Raises:
            NoResponse: The service does not upgrade the connection.

        >>> class Chatter(weir.User):
        ...     @weir.task
        ...     async def chat(self):
        ...         async with self.websocket("/chat") as ws:
        ...             await ws.send("hello", name="greet")
        ...             print(await ws.receive(timeout=5))
        """
        name = name or f"WS {url}"
        parts = form.RequestParts(name, params, headers, cookies=cookies, auth=auth, timeout=timeout)
        request = self._weir_form("GET", http_form(url), parts)
        return block_of(request, name, subprotocols, form.timeout_s(self.timeout if timeout is None else timeout))

    def _weir_form(
        self, method: str, url: str, parts: form.RequestParts, *, is_streamed: bool = False
    ) -> _weir.ScriptRequest:
        name, params, headers, json, data, files, cookies, auth, timeout, allow_redirects, catch = parts
        body, kind = form.body_of(json, data, files)
        if params:
            name = name or f"{method} {url}"
            url = form.with_params(url, params)
        timeout_s = form.timeout_s(self.timeout if timeout is None else timeout)
        own = form.headers_of(headers, kind, auth, cookies)
        all_parts = (method.upper(), url, name, own, body, timeout_s, allow_redirects, catch, False, is_streamed)
        return _Request(self._weir_session, *all_parts)

    def _weir_prepare(self) -> None:
        think = self.think
        if callable(think):
            self._weir_wait = lambda: float(think())  # a bound method
        else:
            made = think_time(think)
            self._weir_wait = lambda: made(self._weir_random)

    def _weir_choose(self) -> Any:
        return self._weir_random.choice(self.tasks)
