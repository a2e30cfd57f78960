"""What messages and manifests show of values that may hold secrets, by the names that these have."""

from __future__ import annotations

import json as json_module
import re
from collections.abc import Mapping
from dataclasses import fields
from typing import Any
from urllib.parse import unquote_plus

from weir import _weir

__all__: list[str] = []

HIDDEN = "***"


def redacted_url(url: str) -> str:
    """URL without user and password, and without values of query parameters with secret names."""
    url = url.partition("#")[0]
    url, mark, query = url.partition("?")
    return re.sub(r"^([^/]*//)?[^/]*@", r"\1***@", url) + mark + _redacted_fields(query)


def redacted_value(name: str, value: object) -> object:
    """Value without the secrets in it: itself, if its name is secret, or fields of it by their names."""
    if _weir.is_secret_name(name) and value is not None:
        return HIDDEN
    if isinstance(value, Mapping):
        return {key: redacted_value(str(key), one) for key, one in value.items()}
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], str):
        # A pair of name and value, as of a form.
        return value[0], redacted_value(*value)
    if isinstance(value, list | tuple):
        shown = [redacted_value("", one) for one in value]
        return shown if isinstance(value, list) else tuple(shown)
    return value


def redacted_body(body: object) -> object:
    """Body without the secrets in it, if it is JSON or the fields of a form."""
    if not isinstance(body, str):
        return body
    try:
        parsed = json_module.loads(body)
    except (ValueError, RecursionError):
        return _redacted_fields(body) if re.fullmatch(r"[^\s=&]+=[^\s]*", body) else body
    shown = redacted_value("", parsed)
    return body if shown == parsed else json_module.dumps(shown, ensure_ascii=False, separators=(",", ":"))


def representation(value: Any) -> str:
    """Text of a dataclass of a request's parts, as dataclasses have it but for secrets."""
    shown = (f"{field.name}={_redacted_part(field.name, getattr(value, field.name))!r}" for field in fields(value))
    return f"{type(value).__qualname__}({', '.join(shown)})"


def _redacted_part(name: str, value: object) -> object:
    if name == "url" and isinstance(value, str):
        return redacted_url(value)
    if name in {"content", "body"}:
        return redacted_body(value)
    return HIDDEN if name in {"auth", "cookies", "pinned_key"} and value is not None else redacted_value("", value)


def redacted_header(line: str) -> str:
    """Line of a header without its value, if its name is secret."""
    name = line.partition(":")[0]
    return f"{name}: {HIDDEN}" if _weir.is_secret_name(name) else line


def _redacted_fields(fields: str) -> str:
    shown = []
    for pair in fields.split("&"):
        name, mark, value = pair.partition("=")
        shown.append(f"{name}={HIDDEN}" if value and _weir.is_secret_name(unquote_plus(name)) else name + mark + value)
    return "&".join(shown)
