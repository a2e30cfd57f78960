"""Outcomes of attempts of aiohttp: kinds of its exceptions, and bodies."""

from __future__ import annotations

import asyncio
from typing import NamedTuple
from weakref import ref

import aiohttp
from aiohttp import ClientResponse

from weir import _retry_clock as clock
from weir._errors import DeadlineExceeded

__all__: list[str] = []


class AttemptOutcome(NamedTuple):
    """Response of an attempt, and why it is a failure: a status or a kind, or neither."""

    response: ClientResponse
    status: int | None
    kind: str | None


_KINDS: tuple[tuple[tuple[type[BaseException], ...], str | None], ...] = (
    ((aiohttp.ClientConnectorDNSError,), "dns"),
    ((aiohttp.ClientSSLError, aiohttp.ServerFingerprintMismatch), "tls"),
    ((aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.ClientHttpProxyError), "connect"),
    ((aiohttp.ServerTimeoutError, asyncio.TimeoutError), "timeout"),
    ((aiohttp.ServerDisconnectedError, aiohttp.ClientPayloadError), "closed"),
    ((aiohttp.InvalidURL, aiohttp.TooManyRedirects, aiohttp.WSServerHandshakeError), None),
    ((aiohttp.ClientResponseError,), "protocol"),
    ((aiohttp.ClientOSError, aiohttp.ClientConnectionResetError, OSError), "reset"),
)
"""Kinds of failures, the first that fits; None is raised at once, as all else is."""


def kind_of(error: Exception) -> str | None:
    """Kind of a failure, as in `weir.Retry.on`; None if the request itself is at fault."""
    return next((kind for kinds, kind in _KINDS if isinstance(error, kinds)), None)


async def drained(response: ClientResponse, max_bytes: int | None) -> bytes | None:
    """Read a body, which `ClientResponse.read` returns from then on; None if it is too long, and then it is closed."""
    parts: list[bytes] = []
    length = 0
    async for part in response.content.iter_any():
        length += len(part)
        if max_bytes is not None and length > max_bytes:
            response.close()
            return None
        parts.append(part)
    response._body = b"".join(parts)
    return await response.read()


def watch_body(response: ClientResponse, deadline_ns: int | None) -> None:
    """End reading the body at the deadline."""
    connection = response.connection
    if deadline_ns is None or connection is None:
        return
    loop = asyncio.get_running_loop()
    watched = ref(response)

    def too_late() -> None:
        response = watched()
        if response is None:
            return
        error = aiohttp.ServerTimeoutError("the deadline passed while the body was read")
        error.__cause__ = DeadlineExceeded("no whole response before the deadline")
        response.content.set_exception(error)
        response.close()

    timer = loop.call_later(max(0.0, (deadline_ns - clock.now_ns()) / 1e9), too_late)
    connection.add_callback(timer.cancel)
