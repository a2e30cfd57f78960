"""`weir.Client` and `weir.AsyncClient`: HTTP calls with deadlines, hedging and retries."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from types import TracebackType
from typing import TYPE_CHECKING, Any

from weir import _weir
from weir._client_base import BaseClient, RequestOptions
from weir._response import Response

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

__all__ = ["AsyncClient", "Client"]


class Client(BaseClient):
    """HTTP client with blocking calls, in the API of httpx. Threads may share it; each has its own connections.

    >>> with weir.Client(base_url="http://localhost:8080", hedge=weir.Hedge(after=0.3, attempts=2), deadline=1) as api:
    ...     time = api.get("/api/work").json()["time"]

    The GIL is released during a call, and Ctrl-C ends it. There are no proxies, cookies or redirects. Headers of a call
    replace the client's of the same name; an empty value removes one.
    """

    __module__ = "weir"

    def request(self, method: str, url: str, **options: Unpack[RequestOptions]) -> Response:
        """Make a call and wait for its response.

        Args:
            method: Method, e.g. ``"GET"``.
            url: URL; absolute, or appended to the client's `base_url`.
            options: ``params``, ``headers`` and ``auth`` as those of the client, for this call; a body as ``json``,
                ``content`` (text or bytes) or ``data`` (form fields); and all of `CallOptions`.

        Returns:
            The response, whatever its status.

        Raises:
            UsageError: A value is invalid.
            DeadlineExceeded: The deadline passed without a response.
            AllAttemptsFailed: No attempt succeeded, and there is no response (or, with `success`, no matching one).
            ResponseTooLarge: The response is longer than `max_response`.
        """
        cached = self._prepared.get((method, url)) if not options else None
        return Response(_weir.wait(cached or self._prepare(method, url, options)))

    def get(self, url: str, **options: Unpack[RequestOptions]) -> Response:
        """Make a GET call; see `request`.

        Returns:
            The response, whatever its status.
        """
        return self.request("GET", url, **options)

    def head(self, url: str, **options: Unpack[RequestOptions]) -> Response:
        """Make a HEAD call; see `request`.

        Returns:
            The response, whatever its status.
        """
        return self.request("HEAD", url, **options)

    def options(self, url: str, **options: Unpack[RequestOptions]) -> Response:
        """Make an OPTIONS call; see `request`.

        Returns:
            The response, whatever its status.
        """
        return self.request("OPTIONS", url, **options)

    def post(self, url: str, **options: Unpack[RequestOptions]) -> Response:
        """Make a POST call; see `request`.

        Returns:
            The response, whatever its status.
        """
        return self.request("POST", url, **options)

    def put(self, url: str, **options: Unpack[RequestOptions]) -> Response:
        """Make a PUT call; see `request`.

        Returns:
            The response, whatever its status.
        """
        return self.request("PUT", url, **options)

    def patch(self, url: str, **options: Unpack[RequestOptions]) -> Response:
        """Make a PATCH call; see `request`.

        Returns:
            The response, whatever its status.
        """
        return self.request("PATCH", url, **options)

    def delete(self, url: str, **options: Unpack[RequestOptions]) -> Response:
        """Make a DELETE call; see `request`.

        Returns:
            The response, whatever its status.
        """
        return self.request("DELETE", url, **options)

    def close(self) -> None:
        """Reject further calls, and close this thread's idle connections; other threads' are closed by their next call.

        A client without references is closed, too.
        """
        self._close()

    def __enter__(self) -> Self:
        """Return the client."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the client."""
        self.close()


# Bytes that are decoded on the event loop, in a few milliseconds; more are on another thread.
_MAX_DECODED_ON_LOOP = 1 << 20


async def _decode_beside(response: Response) -> None:
    """Decode a body so that the event loop goes on meanwhile."""
    steps = response._decoding()
    if steps is not None and not response._decode(steps, _MAX_DECODED_ON_LOOP):
        await asyncio.get_running_loop().run_in_executor(None, response._decode, steps)


class AsyncClient(BaseClient):
    """HTTP client with awaited calls, as `Client` otherwise. Event loops may share it; each has its own connections.

    >>> async with weir.AsyncClient(hedge=weir.Hedge(after=0.3, attempts=2), deadline=1) as client:
    ...     responses = await asyncio.gather(*(client.get(url) for url in urls))

    Calls run on the thread of the asyncio loop (uvloop's, too). A call ends at once when its task is cancelled. Bodies
    of more than 1 MiB are decoded by a thread of the loop's executor.
    """

    __module__ = "weir"

    async def request(self, method: str, url: str, **options: Unpack[RequestOptions]) -> Response:
        """Make a call; see `Client.request`.

        Returns:
            The response, whatever its status.
        """
        cached = self._prepared.get((method, url)) if not options else None
        future = _weir.begin(cached or self._prepare(method, url, options))
        try:
            response = Response(await future)
        except BaseException:
            _weir.abandon(future)
            raise
        if response._handle.coding is not None:
            await _decode_beside(response)
        return response

    def get(self, url: str, **options: Unpack[RequestOptions]) -> Coroutine[Any, Any, Response]:
        """Make a GET call; see `Client.request`.

        Returns:
            A coroutine with the response, whatever its status.
        """
        return self.request("GET", url, **options)

    def head(self, url: str, **options: Unpack[RequestOptions]) -> Coroutine[Any, Any, Response]:
        """Make a HEAD call; see `Client.request`.

        Returns:
            A coroutine with the response, whatever its status.
        """
        return self.request("HEAD", url, **options)

    def options(self, url: str, **options: Unpack[RequestOptions]) -> Coroutine[Any, Any, Response]:
        """Make an OPTIONS call; see `Client.request`.

        Returns:
            A coroutine with the response, whatever its status.
        """
        return self.request("OPTIONS", url, **options)

    def post(self, url: str, **options: Unpack[RequestOptions]) -> Coroutine[Any, Any, Response]:
        """Make a POST call; see `Client.request`.

        Returns:
            A coroutine with the response, whatever its status.
        """
        return self.request("POST", url, **options)

    def put(self, url: str, **options: Unpack[RequestOptions]) -> Coroutine[Any, Any, Response]:
        """Make a PUT call; see `Client.request`.

        Returns:
            A coroutine with the response, whatever its status.
        """
        return self.request("PUT", url, **options)

    def patch(self, url: str, **options: Unpack[RequestOptions]) -> Coroutine[Any, Any, Response]:
        """Make a PATCH call; see `Client.request`.

        Returns:
            A coroutine with the response, whatever its status.
        """
        return self.request("PATCH", url, **options)

    def delete(self, url: str, **options: Unpack[RequestOptions]) -> Coroutine[Any, Any, Response]:
        """Make a DELETE call; see `Client.request`.

        Returns:
            A coroutine with the response, whatever its status.
        """
        return self.request("DELETE", url, **options)

    async def aclose(self) -> None:
        """Reject further calls, and close this loop's idle connections; other loops' are closed within seconds."""
        self._close()

    async def __aenter__(self) -> Self:
        """Return the client."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the client."""
        await self.aclose()
