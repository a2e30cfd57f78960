"""Transports for httpx: `httpx.Client(transport=weir.httpx.Transport(deadline=1.0))`."""

from collections.abc import Callable, Iterable
from os import PathLike
from typing import Literal

import httpx as _library

from weir._call_log import attempts as attempts
from weir._limiter import Limiter
from weir._policy import Budget, Hedge, Retry, Success
from weir._shared_budget import SharedBudget
from weir._time import Time

__all__ = ["AsyncTransport", "Transport", "attempts"]

class Transport(_library.BaseTransport):
    def __init__(
        self,
        *,
        deadline: Time | None = None,
        hedge: Hedge | Iterable[Hedge] | None = None,
        retries: Retry | int | None = None,
        retry_methods: Literal["safe", "idempotent", "all"] = "safe",
        budget: Budget | SharedBudget | None = ...,
        success: Success | None = None,
        timeout: Time | None = None,
        max_response: int | None = None,
        limit: int | Literal["adaptive"] | None = None,
        rate: str | Iterable[str] | Limiter | None = None,
        keys: str | Callable[[_library.Request], str] | None = None,
        verify: bool | str | PathLike[str] = True,
        cert: str | tuple[str, str] | None = None,
        trust_env: bool = True,
        http1: bool = True,
        http2: bool = False,
        limits: _library.Limits | None = None,
        proxy: None = None,
        uds: str | None = None,
        local_address: None = None,
        socket_options: None = None,
    ) -> None: ...
    def handle_request(self, request: _library.Request) -> _library.Response: ...

class AsyncTransport(_library.AsyncBaseTransport):
    def __init__(
        self,
        *,
        deadline: Time | None = None,
        hedge: Hedge | Iterable[Hedge] | None = None,
        retries: Retry | int | None = None,
        retry_methods: Literal["safe", "idempotent", "all"] = "safe",
        budget: Budget | SharedBudget | None = ...,
        success: Success | None = None,
        timeout: Time | None = None,
        max_response: int | None = None,
        limit: int | Literal["adaptive"] | None = None,
        rate: str | Iterable[str] | Limiter | None = None,
        keys: str | Callable[[_library.Request], str] | None = None,
        verify: bool | str | PathLike[str] = True,
        cert: str | tuple[str, str] | None = None,
        trust_env: bool = True,
        http1: bool = True,
        http2: bool = False,
        limits: _library.Limits | None = None,
        proxy: None = None,
        uds: str | None = None,
        local_address: None = None,
        socket_options: None = None,
    ) -> None: ...
    async def handle_async_request(self, request: _library.Request) -> _library.Response: ...
