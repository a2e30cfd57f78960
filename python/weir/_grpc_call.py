"""Calls of gRPC that tasks make, and their responses."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from weir import _weir
from weir._errors import UsageError

if TYPE_CHECKING:
    from weir._weir import CallRoute, CallSchemas, ScriptResponse

__all__ = ["GrpcResponse"]

_SCHEMES = {"grpc://": "http://", "grpcs://": "https://"}


class GrpcResponse:
    """Response to a call of gRPC.

    Attributes:
        status: Name of its status, such as ``"OK"``; the digits of a status of HTTP that a proxy has sent.
        message: Text of the status; empty without one.
        ok: Whether the status is OK.
        messages: Messages as objects of JSON.
        metadata: Fields before and behind the messages.
        elapsed: Time from the send to the end.
    """

    __module__ = "weir"

    def __init__(self, response: ScriptResponse, calls: CallSchemas, method: str) -> None:
        """Wrap a response; tasks have them from `User.grpc`."""
        self._response = response
        self._calls = calls
        self._method = method
        self._messages: list[Any] | None = None
        self.metadata: Mapping[str, str] = response.headers
        code = str(self.metadata.get("grpc-status", ""))
        names = _weir.GRPC_STATUS_NAMES
        is_known = code.isdigit() and int(code) < len(names)
        self.status = names[int(code)] if is_known else str(response.status)
        self.message = unquote(str(self.metadata.get("grpc-message", "")))
        self.elapsed = response.elapsed

    def __repr__(self) -> str:
        """Return method and status."""
        return f"<weir.GrpcResponse {self._method} {self.status}>"

    @property
    def ok(self) -> bool:
        """Whether the status is OK."""
        return self.status == "OK"

    @property
    def messages(self) -> list[Any]:
        """Messages as objects of JSON."""
        if self._messages is None:
            encoding = str(self.metadata.get("grpc-encoding", ""))
            text = self._calls.decode(self._method, self._response.content, encoding)
            self._messages = [json.loads(line) for line in text.splitlines()]
        return self._messages

    def json(self) -> Any:
        """Return the first message.

        Raises:
            ValueError: There is none.
        """
        if not self.messages:
            raise ValueError(f"{self._method}: the response has no message; its status is {self.status}")
        return self.messages[0]

    def check(self, passed: bool, reason: str | None = None) -> bool:
        """Make the call a failure unless a check has passed; return whether it has."""
        return self._response.check(passed, reason)

    def success(self) -> None:
        """Make the call a success, whatever its status is."""
        self._response.success()

    def failure(self, reason: str = "") -> None:
        """Make the call a failure."""
        self._response.failure(reason)


def is_of_calls(url: str | None) -> bool:
    """Whether a host is one of gRPC."""
    return url is not None and url.lower().startswith(tuple(_SCHEMES))


def http_url(url: str) -> str:
    """Return a host of gRPC or WebSocket as one of HTTP, and others as they are."""
    for scheme, http in (_SCHEMES | {"ws://": "http://", "wss://": "https://"}).items():
        if url.lower().startswith(scheme):
            return http + url[len(scheme) :]
    return url


def form_of_calls(url: str | None) -> dict[str, object]:
    """Return what a load of users with this host has in place of it, if it is one of gRPC or WebSocket."""
    if url is None or not is_of_calls(url):
        return {} if url is None else {"url": http_url(url)}
    is_tls = url.lower().startswith("grpcs://")
    return {"url": http_url(url), "h2c": not is_tls, "http2": "only" if is_tls else False}


def message_of(body: Any, is_grpc: bool) -> Any:
    """Return a body as it is; a dict is a message of gRPC."""
    if not isinstance(body, Mapping):
        return body
    if not is_grpc:
        raise TypeError("body: text, bytes or the path of a file, not a mapping; json= takes an object")
    return text_of(body)


def schemas_of(owner: Any, url: str, headers: Mapping[str, str], route: CallRoute) -> CallSchemas:
    """Return the methods that users of a class call; `headers` are those of all calls."""
    lines = [f"{name}: {value}" for name, value in headers.items()]
    return _weir.CallSchemas(url, _paths(owner.proto), _paths(owner.proto_path), owner.protoset, lines, route)


def text_of(message: object) -> str:
    """Return a message as JSON."""
    if isinstance(message, str):
        return message
    try:
        return json.dumps({} if message is None else message, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise UsageError(f"message: {error}") from error


def fields_of(metadata: Mapping[str, str] | None, timeout: float | None) -> dict[str, str | None]:
    """Return the headers of a call."""
    fields: dict[str, str | None] = {
        "Content-Type": "application/grpc",
        "TE": "trailers",
        "grpc-accept-encoding": "gzip",
        "Accept": None,
    }
    if timeout is not None:
        fields["grpc-timeout"] = f"{max(1, round(timeout * 1000))}m"
    return fields | dict(metadata or {})


def _paths(given: Any) -> list[Any]:
    if given is None:
        return []
    return list(given) if isinstance(given, list | tuple) else [given]
