"""`weir.serve`: a service that misbehaves on purpose, for as long as a test needs it."""

from __future__ import annotations

import json
from types import TracebackType
from typing import Any, Literal
from urllib.request import ProxyHandler, build_opener

from weir import _weir
from weir._errors import UsageError
from weir._flags import Flag, arguments

__all__ = ["Service", "serve"]


class Service:
    """A running service. It stops at the end of its ``with`` block, or with `stop`."""

    __module__ = "weir"

    url: str
    """Where it is, e.g. ``http://127.0.0.1:40123``; without a slash at the end."""

    host: str
    """The address that it listens on."""

    port: int
    """The port that it listens on."""

    def __init__(self, name: str, handle: _weir.ServiceHandle, grace_s: float) -> None:
        """Wrap a service that runs; `serve` makes them."""
        self._name = name
        self._handle = handle
        self._grace_s = grace_s
        self.url, self.host, self.port = handle.url, handle.host, handle.port

    def __repr__(self) -> str:
        """Say what it is and where."""
        return f"<weir.Service {self._name} at {self.url}>"

    def __enter__(self) -> Service:
        """Hand out the service."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop the service."""
        self.stop()

    def stop(self, grace: float | None = None) -> None:
        """Take no more connections, wait for the answers that are owed, and end.

        Args:
            grace: How many seconds those answers have; the service's own `grace` by default.

        Calling it again does nothing.
        """
        self._handle.stop(self._grace_s if grace is None else grace)

    def stats(self) -> dict[str, Any]:
        """Return what the service counted: its ``/stats``, as `exchange` and `work` have it.

        Raises:
            urllib.error.HTTPError: The service keeps no such count.
        """
        counted = json.loads(self._get("/stats"))
        assert isinstance(counted, dict)
        return counted

    def metrics(self) -> str:
        """Return its ``/metrics``, as Prometheus reads them."""
        return self._get("/metrics").decode()

    def _get(self, path: str) -> bytes:
        # A proxy of the environment is not meant for a service beside us.
        with build_opener(ProxyHandler({})).open(self.url + path, timeout=10) as answer:
            body: bytes = answer.read()
        return body


def serve(
    service: Literal["body", "exchange", "functions", "sleep", "work"],
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    seed: int | None = None,
    grace: float = 0.0,
    **flags: Flag,
) -> Service:
    """Start a service beside the program, on threads of its own, and return when it takes connections.

    Args:
        service: Which one: ``"work"``, an unreliable upstream; ``"exchange"``, an API with rate limits;
            ``"functions"``, computing in a pool of threads; ``"sleep"``, blocking and waiting handlers; ``"body"``,
            bodies of all kinds.
        host: The address to listen on.
        port: The port; 0 takes a free one.
        seed: The same seed gives the same behaviour, request by request.
        grace: How many seconds `Service.stop` waits for answers that are owed.
        flags: The flags of ``weir serve SERVICE``, with ``_`` for ``-``: ``delay="5ms..20ms"``,
            ``limit=["20/1s", "100/1m"]``, ``keep_alive=True``. ``weir serve SERVICE --help`` has them all.

    Raises:
        UsageError: There is no such service or flag, or a value makes no sense.
        SetupError: The address is taken, or a file is not there.

    >>> with weir.serve("work", mix={"good": 9, "error": 1}, delay="5ms", seed=1) as upstream:
    ...     run = weir.load(upstream.url + "/api/work", requests=1000)
    >>> run.status
    {200: 897, 500: 103}
    """
    if isinstance(service, str) and service.startswith("-"):
        raise UsageError(f"{service!r} is not a service")
    args = [service, *arguments({"host": host, "port": port, "seed": seed, **flags})]
    return Service(service, _weir.serve(args), grace)
