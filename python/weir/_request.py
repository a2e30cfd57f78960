"""Arguments of a call -> URL, headers and body."""

from __future__ import annotations

import json as json_module
import re
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias
from urllib.parse import urlencode

from weir import _weir
from weir._errors import UsageError

__all__ = ["Params", "basic", "body_of", "is_absolute", "target_of", "without_secrets"]

# Created once: creating an encoder takes longer than using it.
_encode = json_module.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode

_One: TypeAlias = str | int | float | bool | None

Params: TypeAlias = Mapping[str, Any] | Iterable[tuple[str, _One]]
"""Query parameters, or form fields: a mapping (a sequence repeats a name), or pairs. True, False and None become
``true``, ``false`` and an empty value."""

# A URL with a scheme; another one is appended to the base URL, whatever its path has.
_ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*://")


def is_absolute(url: str) -> bool:
    """Whether the URL is complete, and not appended to the base URL."""
    return _ABSOLUTE.match(url) is not None


def without_secrets(params: Params | None) -> list[tuple[str, str]]:
    """List query parameters but for those with secret names."""
    return [(name, value) for name, value in _pairs("params", params) if not _weir.is_secret_name(name)]


def target_of(base_url: str, url: str, shared: Params | None, params: Params | None) -> tuple[str, str | None]:
    """Build the absolute URL, and split user and password off, as the value of an Authorization header."""
    is_complete = is_absolute(url)
    if base_url and not is_complete:
        base, _, base_query = base_url.partition("?")
        if base_query:
            raise UsageError(f"base_url: {_weir.without_secrets(base_url)!r} has a query; give it as params")
        url = f"{base.rstrip('/')}/{url.lstrip('/')}" if url and url[0] not in "?#" else base + url
        is_complete = is_absolute(url)
    if not is_complete:
        shown = _weir.without_secrets(url)
        raise UsageError(f"url: {shown!r} has no scheme; write e.g. http://localhost:8080/path, or give a base_url")
    url = url.partition("#")[0]
    query = urlencode([*_pairs("params", shared), *_pairs("params", params)])
    if query:
        url += ("&" if "?" in url else "?") + query
    return _weir.split_url(url)


def basic(auth: tuple[str, str]) -> str:
    """Format user and password for the Authorization header (RFC 7617)."""
    try:
        user, password = auth
    except (TypeError, ValueError):
        raise TypeError("auth: a pair of user and password") from None
    if ":" in user:
        raise UsageError("auth: invalid user: it has a colon")
    return "Basic " + b64encode(f"{user}:{password}".encode()).decode()


def body_of(json: Any, content: str | bytes | None, data: Params | None) -> tuple[bytes | None, dict[str, str]]:
    """Encode the body, with its Content-Type."""
    given = [name for name, value in (("json", json), ("content", content), ("data", data)) if value is not None]
    if len(given) > 1:
        raise UsageError(f"{' and '.join(given)} exclude each other; give one body")
    if json is not None:
        try:
            text = _encode(json)
        except ValueError as error:
            raise UsageError(f"json: {error}") from error
        return text.encode(), {"content-type": "application/json"}
    if data is not None:
        return urlencode(_pairs("data", data)).encode(), {"content-type": "application/x-www-form-urlencoded"}
    if isinstance(content, str):
        return content.encode(), {"content-type": "text/plain; charset=utf-8"}
    if content is not None and not isinstance(content, bytes):
        raise TypeError(f"content: text or bytes, not {type(content).__name__}")
    return content, {}


def _pairs(name: str, params: Params | None) -> list[tuple[str, str]]:
    if params is None:
        return []
    if isinstance(params, str | bytes):
        raise TypeError(f"{name}: a mapping or pairs, not {type(params).__name__}")
    items = params.items() if isinstance(params, Mapping) else params
    pairs = []
    for key, value in items:
        several = value if isinstance(value, Sequence) and not isinstance(value, str) else [value]
        pairs += [(str(key), _text(one)) for one in several]
    return pairs


def _text(value: _One) -> str:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)
