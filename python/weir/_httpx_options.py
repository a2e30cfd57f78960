"""Types of the options of transports, for the stubs of `weir.httpx2` and `weir.httpx`."""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike
from typing import Literal, TypedDict

from weir._limiter import Limiter
from weir._policy import Budget, Hedge, Retry, Success
from weir._shared_budget import SharedBudget
from weir._time import Time

__all__ = ["HttpxOptions"]


class HttpxOptions(TypedDict, total=False):
    """Options that do not have types of the library; `TransportOptions.__init__` says what they mean."""

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
    verify: bool | str | PathLike[str]
    cert: str | tuple[str, str] | None
    trust_env: bool
    http1: bool
    http2: bool
    proxy: None
    uds: str | None
    local_address: None
    socket_options: None
