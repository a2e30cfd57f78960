"""`weir.get`, `post` and so on: calls through one client that the whole program shares."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weir._client import Client

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from weir._client_base import RequestOptions
    from weir._response import Response

__all__ = ["delete", "get", "head", "options", "patch", "post", "put", "request"]

# No connections before the first call. Each thread has its own, and a child of a fork opens new ones.
_client = Client()


def request(method: str, url: str, **options: Unpack[RequestOptions]) -> Response:
    """Make a call through a client that the whole program shares; see `Client.request`.

    Each thread keeps its connections from call to call. Calls block: in a coroutine use an `AsyncClient`.

    Args:
        method: Method, e.g. ``"GET"``.
        url: Absolute URL.
        options: ``params``, ``headers``, ``auth``; ``json``, ``content`` or ``data``; and all of `CallOptions`.

    Returns:
        The response, whatever its status.

    Raises:
        UsageError: A value is invalid.
        DeadlineExceeded: The deadline passed without a response.
        AllAttemptsFailed: No attempt succeeded, and there is no response.

    >>> weir.get("http://localhost:8080/orders", params={"page": 2}, deadline=1).json()  # doctest: +SKIP
    """
    return _client.request(method, url, **options)


def get(url: str, **options: Unpack[RequestOptions]) -> Response:
    """Make a GET call through the shared client; see `request`.

    Returns:
        The response, whatever its status.
    """
    return _client.request("GET", url, **options)


def head(url: str, **options: Unpack[RequestOptions]) -> Response:
    """Make a HEAD call through the shared client; see `request`.

    Returns:
        The response, whatever its status.
    """
    return _client.request("HEAD", url, **options)


def options(url: str, **options: Unpack[RequestOptions]) -> Response:
    """Make an OPTIONS call through the shared client; see `request`.

    Returns:
        The response, whatever its status.
    """
    return _client.request("OPTIONS", url, **options)


def post(url: str, **options: Unpack[RequestOptions]) -> Response:
    """Make a POST call through the shared client; see `request`.

    Returns:
        The response, whatever its status.
    """
    return _client.request("POST", url, **options)


def put(url: str, **options: Unpack[RequestOptions]) -> Response:
    """Make a PUT call through the shared client; see `request`.

    Returns:
        The response, whatever its status.
    """
    return _client.request("PUT", url, **options)


def patch(url: str, **options: Unpack[RequestOptions]) -> Response:
    """Make a PATCH call through the shared client; see `request`.

    Returns:
        The response, whatever its status.
    """
    return _client.request("PATCH", url, **options)


def delete(url: str, **options: Unpack[RequestOptions]) -> Response:
    """Make a DELETE call through the shared client; see `request`.

    Returns:
        The response, whatever its status.
    """
    return _client.request("DELETE", url, **options)
