"""Arguments of requests as the library requests has them -> URL, headers and body."""

from __future__ import annotations

import base64
import json as json_module
import os
import uuid
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlencode

from weir import _weir

__all__: list[str] = []


class RequestParts(NamedTuple):
    """Arguments of a request beside its method and URL; `weir.User.request` describes them."""

    name: str | None = None
    params: Any = None
    headers: Any = None
    json: Any = None
    data: Any = None
    files: Any = None
    cookies: Any = None
    auth: Any = None
    timeout: Any = None
    allow_redirects: bool = True
    catch: bool = False


def with_params(url: str, params: Any) -> str:
    """Return the URL with a query added."""
    if not params:
        return url
    query = params.decode() if isinstance(params, bytes) else params
    if not isinstance(query, str):
        query = urlencoded(query)
    if not query:
        return url
    url, hash_mark, fragment = url.partition("#")
    separator = "&" if "?" in url else "?"
    return f"{url}{separator}{query}{hash_mark}{fragment}"


def urlencoded(fields: Any) -> str:
    """Encode fields as a query; fields without a value are left out, lists repeat their field."""
    pairs: list[tuple[Any, Any]] = []
    for name, value in fields.items() if isinstance(fields, Mapping) else fields:
        several = value if isinstance(value, Iterable) and not isinstance(value, str | bytes) else [value]
        pairs += [(name, one) for one in several if one is not None]
    return urlencode(pairs)


def body_of(json: Any, data: Any, files: Any) -> tuple[bytes | None, str | None]:
    """Return the body, and its type."""
    if files:
        return _multipart(data, files)
    if data:
        return _data(data)
    if json is not None:
        body = _weir.json_body(json)
        if body is None:
            body = json_module.dumps(json, allow_nan=False).encode()
        return body, "application/json"
    return None, None


def _data(data: Any) -> tuple[bytes, str | None]:
    if isinstance(data, Mapping | list | tuple):
        return urlencoded(data).encode(), "application/x-www-form-urlencoded"
    # As requests: text and bytes have no type.
    content = data.read() if hasattr(data, "read") else data
    if isinstance(content, str):
        return content.encode(), None
    if isinstance(content, bytes | bytearray):
        return bytes(content), None
    return b"".join(part.encode() if isinstance(part, str) else part for part in content), None


def authorization(auth: Any) -> str | None:
    """Return the header of basic authentication."""
    if auth is None:
        return None
    if isinstance(auth, tuple | list) and len(auth) == 2:
        user, password = auth
    elif hasattr(auth, "username") and hasattr(auth, "password"):
        user, password = auth.username, auth.password
    else:
        raise TypeError(f"auth: {type(auth).__name__} is not supported; write (user, password)")
    return "Basic " + base64.b64encode(f"{user}:{password}".encode("latin-1")).decode()


def timeout_s(timeout: Any) -> float | None:
    """Return the timeout in seconds; of a pair for connection and response the sum."""
    if isinstance(timeout, tuple | list):
        given = [float(part) for part in timeout if part is not None]
        return sum(given) if given else None
    return None if timeout is None else float(timeout)


def headers_of(headers: Any, kind: str | None, auth: Any, cookies: Any) -> dict[str, Any] | None:
    """Return the headers of a request; None if it has none of its own."""
    if headers is None and kind is None and auth is None and cookies is None:
        return None
    found: dict[str, Any] = dict(headers or ())
    names = {str(name).lower() for name in found}
    if kind is not None and "content-type" not in names:
        found["Content-Type"] = kind
    value = authorization(auth)
    if value is not None:
        found = {name: old for name, old in found.items() if str(name).lower() != "authorization"}
        found["Authorization"] = value
    if cookies:
        pairs = cookies.items() if hasattr(cookies, "items") else cookies
        found["Cookie"] = "; ".join(f"{name}={value}" for name, value in pairs)
    return found


def _multipart(data: Any, files: Any) -> tuple[bytes, str]:
    boundary = uuid.uuid4().hex
    parts: list[bytes] = []

    def add(name: str, content: Any, filename: str | None, kind: str | None, more: Mapping[str, str]) -> None:
        head = f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"'
        if filename is not None:
            head += f'; filename="{filename}"'
        if kind is not None:
            head += f"\r\nContent-Type: {kind}"
        head += "".join(f"\r\n{key}: {value}" for key, value in more.items())
        content = content.read() if hasattr(content, "read") else content
        body = content.encode() if isinstance(content, str) else bytes(content)
        parts.append(head.encode() + b"\r\n\r\n" + body + b"\r\n")

    for name, value in data.items() if isinstance(data, Mapping) else data or ():
        for one in value if isinstance(value, list | tuple) else [value]:
            if one is not None:
                add(name, one if isinstance(one, bytes) else str(one), None, None, {})
    for name, given in files.items() if isinstance(files, Mapping) else files:
        filename, content, kind, more = name, given, None, {}
        if isinstance(given, tuple | list):
            filename, content, kind, more = (*given, *(None, {})[len(given) - 2 :])[:4]
        elif hasattr(given, "name") and isinstance(given.name, str):
            filename = os.path.basename(given.name)
        add(name, content, filename, kind or None, more or {})
    parts.append(f"--{boundary}--\r\n".encode())
    return b"".join(parts), f"multipart/form-data; boundary={boundary}"
