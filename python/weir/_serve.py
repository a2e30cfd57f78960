"""`weir.serve`: a test server with fault injection, for the duration of a test."""

from __future__ import annotations

import json
from types import TracebackType
from typing import Any, Literal
from urllib.request import ProxyHandler, build_opener

from weir import _weir
from weir._flags import Flag, texts_by_name

__all__ = ["Service", "serve"]


class Service:
    """Running service; stopped at the end of its ``with`` block, or by `stop`.

    Attributes:
        url: Base URL without a slash at the end, e.g. ``http://127.0.0.1:40123``; that of ``grpc`` begins with
            ``grpc://``, that of ``ws`` with ``ws://``.
        host: Listen address.
        port: Listen port.
    """

    __module__ = "weir"

    url: str
    host: str
    port: int

    def __init__(self, name: str, handle: _weir.ServiceHandle, grace_s: float) -> None:
        """Wrap a running service; `serve` makes them."""
        self._name = name
        self._handle = handle
        self._grace_s = grace_s
        self.url, self.host, self.port = handle.url, handle.host, handle.port

    def __repr__(self) -> str:
        """Return name and URL."""
        return f"<weir.Service {self._name} at {self.url}>"

    def __enter__(self) -> Service:
        """Return the service."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop the service."""
        self.stop()

    def stop(self, grace: float | None = None) -> None:
        """Stop accepting connections, wait for requests in flight, and end; a second call does nothing.

        Args:
            grace: Timeout for requests in flight, in seconds; by default that of `serve`.
        """
        self._handle.stop(self._grace_s if grace is None else grace)

    def stats(self) -> dict[str, Any]:
        """Return the statistics of `grpc`, `llm`, `ratelimit`, `shop`, `stream` and `work`.

        Returns:
            The JSON of ``GET /stats``.

        Raises:
            urllib.error.HTTPError: The service has no ``/stats``.
        """
        stats = json.loads(self._get("/stats"))
        assert isinstance(stats, dict)
        return stats

    def records(self) -> list[dict[str, Any]]:
        """Return the records of the last responses of `stream` and `llm`.

        Returns:
            The lines of ``GET /record``, oldest first; times are in nanoseconds.

        Raises:
            urllib.error.HTTPError: The service has no ``/record``.
        """
        return [json.loads(line) for line in self._get("/record").decode().splitlines()]

    def metrics(self) -> str:
        """Return the metrics.

        Returns:
            The text of ``GET /metrics``, in Prometheus' format.
        """
        return self._get("/metrics").decode()

    def _get(self, path: str) -> bytes:
        # No proxy of the environment: the service is on this machine.
        url = f"http{self.url[self.url.index('://') :]}{path}"
        with build_opener(ProxyHandler({})).open(url, timeout=10) as response:
            body: bytes = response.read()
        return body


def serve(
    service: Literal[
        "work",
        "ratelimit",
        "functions",
        "shop",
        "stream",
        "llm",
        "sleep",
        "grpc",
        "httpbin",
        "ws",
    ],
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    seed: int | None = None,
    grace: float = 0.0,
    **flags: Flag,
) -> Service:
    """Start a service on threads of this process; it accepts connections when this returns.

    Args:
        service: ``"work"``, unreliable upstream; ``"ratelimit"``, API with rate limits per key; ``"functions"``,
            thread-pool server of functions; ``"shop"``, shop with login, items, cart and purchase; ``"stream"``,
            events with known gaps; ``"llm"``, language model with the APIs of OpenAI and Anthropic; ``"sleep"``,
            blocking and non-blocking delays; ``"grpc"``, calls of gRPC; ``"httpbin"``, request and response bodies;
            ``"ws"``, WebSocket.
        host: Listen address.
        port: Listen port; 0 picks a free one.
        seed: Seed of all random choices, per request number.
        grace: Graceful-shutdown timeout for requests in flight, in seconds.
        flags: Flags of ``weir serve SERVICE``, with ``_`` for ``-``: ``delay="5ms..20ms"``,
            ``limit=["20/1s", "100/1m"]``, ``keepalive=True``; see ``weir serve SERVICE --help``.

    Returns:
        The running service.

    Raises:
        UsageError: Unknown service or flag, or an invalid value.
        SetupError: The address is in use, or a file cannot be read.

    >>> with weir.serve("work", mix={"good": 9, "error": 1}, delay="5ms", seed=1) as upstream:
    ...     run = weir.load(upstream.url + "/api/work", requests=1000)
    >>> run.status
    {200: 897, 500: 103}
    """
    texts = texts_by_name({"host": host, "port": port, "seed": seed, **flags})
    return Service(service, _weir.serve(service, texts), grace)
