"""Native objects of the users of a script."""

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from os import PathLike
from types import TracebackType
from typing import Any, TypeAlias, final

from weir._headers import Headers

__all__ = ["CallRoute", "CallSchemas", "ScriptEvent", "ScriptRequest", "ScriptResponse", "ScriptSession", "StreamStep"]

_Path: TypeAlias = str | PathLike[str]

@final
class CallRoute:
    """Way of a load to its services, for questions before its calls."""

@final
class CallSchemas:
    """Methods of gRPC that tasks call: JSON to messages, and back."""

    def __new__(
        cls,
        url: str,
        proto: Sequence[_Path],
        proto_path: Sequence[_Path],
        protoset: _Path | None,
        headers: Sequence[str],
        route: CallRoute,
    ) -> CallSchemas: ...
    def encode(self, method: str, json: str, metadata: Sequence[tuple[str, str]]) -> bytes: ...
    def decode(self, method: str, body: bytes, encoding: str) -> str: ...

@final
class ScriptSession:
    """What the requests of a user have in common."""

    base: str
    """URL before paths."""

    def __new__(cls, base: str, head: str, given: str = "", home: str = "") -> ScriptSession: ...
    def set_head(self, head: str) -> None:
        """Replace the header lines of all requests."""

    def cookies(self) -> list[tuple[str, str, str, str]]:
        """List the cookies: name, value, domain, path."""

    def set_cookie(self, field: str, url: str | None = None) -> None:
        """Store a cookie as the field Set-Cookie does."""

    def clear_cookies(self) -> None:
        """Remove all cookies."""

@final
class ScriptRequest:
    """Request that a task yields."""

    method: str
    url: str
    body: bytes | None
    headers: list[tuple[str, str | None]]

    def __new__(
        cls,
        session: ScriptSession,
        method: str,
        url: str,
        name: str | None = None,
        headers: Mapping[str, Any] | None = None,
        body: bytes | None = None,
        timeout: float | None = None,
        redirects: bool = True,
        catches: bool = False,
        is_watched: bool = False,
        is_streamed: bool = False,
    ) -> ScriptRequest: ...

@final
class StreamStep:
    """What a task yields within the block of a stream."""

    NextEvent: StreamStep
    Leave: StreamStep

@final
class ScriptEvent:
    """Event of a response that a task reads as a stream."""

    event: str
    id: str
    data: str
    content: bytes

    def json(self) -> Any: ...

@final
class ScriptResponse:
    """Response that a task gets; nothing is parsed before it is looked at."""

    status: int
    status_code: int
    ok: bool
    url: str
    target: str
    method: str
    reason: str
    encoding: str | None
    text: str
    content: bytes
    raw_length: int
    headers: Headers
    cookies: dict[str, str]
    elapsed: timedelta
    history: list[ScriptResponse]
    request: ScriptRequest
    session: ScriptSession
    failure_kind: str | None
    error: Exception | None
    decided: str | None
    js: Any

    def json(self, **options: Any) -> Any:
        """Return the body as JSON."""

    def set_on_leave(self, call: Callable[[], None]) -> None: ...
    def call_on_leave(self) -> None: ...
    def check(self, condition: bool, reason: str | None = None) -> bool:
        """Count the response as a failure unless the condition holds."""

    def success(self) -> None:
        """Count the response as a success."""

    def failure(self, reason: object) -> None:
        """Count the response as a failure."""

    def raise_for_status(self) -> None:
        """Raise an exception for a status from 400 on."""

    def close(self) -> None: ...
    def __enter__(self) -> ScriptResponse: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool: ...
