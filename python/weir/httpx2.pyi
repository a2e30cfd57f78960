"""Transports for httpx2: `httpx2.Client(transport=weir.httpx2.Transport(deadline=1.0))`."""

from collections.abc import Callable

import httpx2 as _library
from typing_extensions import Unpack

from weir._call_log import attempts as attempts
from weir._httpx_options import HttpxOptions

__all__ = ["AsyncTransport", "Transport", "attempts"]

class _Options(HttpxOptions, total=False):
    keys: str | Callable[[_library.Request], str] | None
    limits: _library.Limits | None

class Transport(_library.BaseTransport):
    def __init__(self, **options: Unpack[_Options]) -> None: ...
    def handle_request(self, request: _library.Request) -> _library.Response: ...

class AsyncTransport(_library.AsyncBaseTransport):
    def __init__(self, **options: Unpack[_Options]) -> None: ...
    async def handle_async_request(self, request: _library.Request) -> _library.Response: ...
