"""Arguments and attributes of httpx that clients have not, and what they have for them."""

from __future__ import annotations

from os import PathLike
from typing import Any

__all__ = ["check_httpx_types", "unknown_argument", "unknown_attribute"]

_NO_COOKIES = "cookies are not kept; give headers={'Cookie': 'name=value'}"
_NO_PROXY = "there are no proxies"
_NO_REDIRECTS = "redirects are not followed; look at response.headers['location']"
_NO_TRANSPORT = "there are no transports; for a test start a server with weir.serve(...) and give its URL"

_OF_CLIENTS = {
    "limits": "max_concurrency=N bounds concurrent calls; idle connections are kept without a limit",
    "pool_limits": "max_concurrency=N bounds concurrent calls; idle connections are kept without a limit",
    "max_connections": "max_concurrency=N bounds concurrent calls",
    "proxy": _NO_PROXY,
    "proxies": _NO_PROXY,
    "mounts": _NO_PROXY,
    "trust_env": "variables of the environment have no effect; leave it out",
    "transport": _NO_TRANSPORT,
    "app": _NO_TRANSPORT,
    "event_hooks": "there are no hooks; call a function of your own, and see response.attempts",
    "cookies": _NO_COOKIES,
    "max_redirects": _NO_REDIRECTS,
    "http1": "HTTP/1.1 is always on; http2=True adds HTTP/2 over TLS; leave it out",
    "default_encoding": "decode response.content yourself",
    "max_retries": "retries=N",
    "dispatch": _NO_TRANSPORT,
}

_OF_CALLS = {
    "follow_redirects": _NO_REDIRECTS,
    "allow_redirects": _NO_REDIRECTS,
    "cookies": _NO_COOKIES,
    "proxies": _NO_PROXY,
    "extensions": "there are none; leave it out",
    "files": "a multipart body is content=, with its Content-Type in headers=",
    "stream": "responses are read whole, up to max_response",
    "verify": "it is an argument of the client",
    "cert": "it is an argument of the client",
}


_ATTRIBUTES = frozenset(
    {
        "auth",
        "build_request",
        "cookies",
        "event_hooks",
        "follow_redirects",
        "handle_async_request",
        "handle_request",
        "max_redirects",
        "params",
        "send",
        "stream",
        "timeout",
        "trust_env",
    }
)
"""Attributes by which SDKs and httpx itself use a client of httpx, or a transport."""


def unknown_attribute(owner: str, name: str) -> AttributeError:
    """Make the error of an attribute that does not exist; for those of httpx, such as SDKs use, with what to use.

    Returns:
        The error.
    """
    error = AttributeError(f"{owner} has no attribute {name!r}")
    if name not in _ATTRIBUTES:
        return error
    transport = "AsyncTransport" if "Async" in owner else "Transport"
    client = transport.replace("Transport", "Client")
    return AttributeError(
        f"{error}: it is not a client of httpx; for an SDK, or code on httpx, use httpx2.{client}(transport="
        f"weir.httpx2.{transport}(...)), or the same of weir.httpx"
    )


def unknown_argument(owner: str, given: dict[str, Any], *, of_call: bool = False) -> TypeError:
    """Make the error of an argument that does not exist: with the public name, the argument, and what to use.

    Returns:
        The error.
    """
    name = min(given)
    remedy = (_OF_CALLS if of_call else _OF_CLIENTS).get(name)
    if remedy is None:
        remedy = "see weir.CallOptions" if of_call else f"see help({owner})"
    what = f"unknown option {name!r} of a call" if of_call else f"{owner}: unknown argument {name!r}"
    return TypeError(f"{what}; {remedy}")


def check_httpx_types(base_url: Any, auth: Any, verify: Any, cert: Any, timeout: Any) -> None:
    """Check values that httpx has in types of its own.

    Raises:
        TypeError: One of them is of such a type.
    """
    if not isinstance(base_url, str):
        raise TypeError(f"base_url: text, not {_kind(base_url)}; write str(url)")
    if auth is not None and not isinstance(auth, tuple | list):
        raise TypeError(f"auth: a pair of user and password, not {_kind(auth)}; give headers={{'Authorization': ...}}")
    if not isinstance(verify, bool | str | PathLike):
        raise TypeError(f"verify: True, False or a PEM file of CA certificates, not {_kind(verify)}")
    if isinstance(cert, tuple | list) and len(cert) != 2:
        raise TypeError("cert: a PEM file, or a pair of certificate and key; keys with a password are not supported")
    if isinstance(timeout, tuple | dict) or hasattr(timeout, "connect"):
        raise TypeError(f"timeout: seconds for an attempt with its whole response, not {_kind(timeout)}; give a number")


def _kind(value: object) -> str:
    return type(value).__name__
