"""Types of the options of transports, for the stubs of `weir.httpx2` and `weir.httpx`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from os import PathLike
from typing import Generic, Literal, TypeVar

from weir._limiter import Limiter
from weir._policy import Budget, Hedge, Retry, Success
from weir._shared_budget import SharedBudget
from weir._time import Time

# Only type checkers read this file.
if sys.version_info >= (3, 11):
    from typing import TypedDict
else:
    from typing_extensions import TypedDict

__all__ = ["HttpxOptions"]

_Request = TypeVar("_Request")
_Limits = TypeVar("_Limits")


class HttpxOptions(TypedDict, Generic[_Request, _Limits], total=False):
    """Options, with the types of the library's requests and limits; `TransportOptions.__init__` describes them."""

    deadline: Time | None
    hedge: Hedge | Iterable[Hedge] | None
    retries: Retry | int | None
    retry_methods: Literal["safe", "idempotent", "all"]
    budget: Budget | SharedBudget | None
    success: Success | None
    timeout: Time | None
    max_response: int | None
    limit: int | Literal["adaptive"] | None
    rate: str | Iterable[str] | Limiter | None
    keys: str | Callable[[_Request], str] | None
    limits: _Limits | None
    verify: bool | str | PathLike[str]
    cert: str | tuple[str, str] | None
    trust_env: bool
    http1: bool
    http2: bool
    proxy: None
    uds: str | None
    local_address: None
    socket_options: None
