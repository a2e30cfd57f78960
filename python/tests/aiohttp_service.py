"""A service of aiohttp in the loop of a test, which does what the test scripts."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import ClientResponse, ClientSession, TCPConnector, web

import weir
from weir.aiohttp import attempts

QUICK = weir.Retry(times=2, backoff=(0, 0))

Script = Callable[[int, web.Request], "Awaitable[web.StreamResponse]"]


class Scripted:
    """Running service, and the session of a client for it."""

    def __init__(self, url: str, session: ClientSession, connector: TCPConnector) -> None:
        """Make a service that has seen nothing yet."""
        self.url = url
        self.session = session
        self.connector = connector
        self.seen: list[tuple[str, bytes]] = []
        self.headers: list[Any] = []

    @property
    def in_use(self) -> int:
        """Connections of the client that requests hold."""
        return len(self.connector._acquired)

    async def settled(self) -> None:
        """Wait until no connection is in use."""
        for _ in range(1000):
            if not self.in_use:
                return
            await asyncio.sleep(0.005)
        raise AssertionError(f"{self.in_use} connections in use")


@asynccontextmanager
async def scripted(script: Script, *middlewares: Any, limit: int = 100, **options: Any) -> AsyncIterator[Scripted]:
    """Service that responds to its n-th request, from 1, as the script does; and a client's session."""
    service: Scripted

    async def handle(request: web.Request) -> web.StreamResponse:
        service.seen.append((f"{request.method} {request.path_qs}", await request.read()))
        service.headers.append(request.headers)
        return await script(len(service.seen), request)

    app = web.Application()
    app.router.add_route("*", "/{tail:.*}", handle)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1, handler_cancellation=True)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    connector = TCPConnector(limit_per_host=limit)
    try:
        async with ClientSession(url, connector=connector, middlewares=middlewares, **options) as session:
            service = Scripted(url, session, connector)
            yield service
    finally:
        await runner.cleanup()


def statuses(*codes: int, headers: dict[str, str] | None = None) -> Script:
    """Script of these statuses, the last of which repeats."""

    async def script(number: int, request: web.Request) -> web.StreamResponse:
        code = codes[min(number, len(codes)) - 1]
        return web.Response(status=code, text=f"{number}", headers=headers if code != 200 else None)

    return script


async def drop(request: web.Request) -> web.StreamResponse:
    """Close the connection without a response."""
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


def run(main: Coroutine[Any, Any, None]) -> None:
    """Run a test, and collect what it left."""
    asyncio.run(asyncio.wait_for(main, 300))
    # A response or connection that nothing closed warns when it is collected, and a warning fails the test.
    gc.collect()


def outcomes(of: ClientResponse | BaseException) -> list[str]:
    """Reasons and outcomes of the attempts."""
    return [f"{attempt.reason} {attempt}" for attempt in attempts(of)]


def hangs_first(first: int = 1) -> Script:
    """Script whose first requests get no response before the client ends them."""

    async def script(number: int, request: web.Request) -> web.StreamResponse:
        if number <= first:
            await asyncio.sleep(3600)
        return web.Response(text=f"{number}")

    return script
