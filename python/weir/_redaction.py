"""What messages and manifests show of values that may hold secrets, by the names that these have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from weir import _weir

__all__: list[str] = []

HIDDEN = "***"


def redacted_value(name: str, value: object) -> object:
    """Value without the secrets in it: itself, if its name is secret, or fields of it by their names."""
    if _weir.is_secret_name(name) and value is not None:
        return HIDDEN
    if isinstance(value, str | bytes):
        text = value if isinstance(value, str) else value.decode("utf-8", "replace")
        return _weir.without_secrets(text) if text is value else _weir.without_secrets(text).encode()
    if isinstance(value, Mapping):
        return {key: redacted_value(str(key), one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        if isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], str):
            # A pair of name and value, as of a form.
            return value[0], redacted_value(*value)
        shown = [redacted_value("", one) for one in value]
        return shown if isinstance(value, list) else tuple(shown)
    return value


def representation(value: Any) -> str:
    """Text of a dataclass of a request's parts, as dataclasses have it but for secrets."""
    shown = (f"{field.name}={_redacted_part(field.name, getattr(value, field.name))!r}" for field in fields(value))
    return f"{type(value).__qualname__}({', '.join(shown)})"


def _redacted_part(name: str, value: object) -> object:
    return HIDDEN if name in {"auth", "cookies", "pinned_key"} and value is not None else redacted_value(name, value)
