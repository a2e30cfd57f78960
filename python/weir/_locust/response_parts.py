"""What responses of the library requests have that weir's own scripts do without."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from typing import Any

from weir import _weir

__all__ = ["install"]

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_encoding: Any = vars(_weir.ScriptResponse)["encoding"]
_text: Any = vars(_weir.ScriptResponse)["text"]


def iter_content(response: Any, chunk_size: int | None = 1, decode_unicode: bool = False) -> Iterator[Any]:
    """Iterate over parts of the body, which has come as a whole."""
    body = response.text if decode_unicode and response.encoding else response.content
    size = chunk_size or max(1, len(body))
    return (body[at : at + size] for at in range(0, len(body), size))


def iter_lines(
    response: Any, chunk_size: int = 512, decode_unicode: bool = False, delimiter: Any = None
) -> Iterator[Any]:
    """Iterate over the lines of the body, which has come as a whole."""
    del chunk_size
    body = response.text if decode_unicode and response.encoding else response.content
    return iter(body.split(delimiter) if delimiter else body.splitlines())


def _encoding_of(response: Any) -> str | None:
    """Return the name of the characters' encoding that the task has set, or that of the header."""
    return vars(response).get("_set_encoding") or _encoding.__get__(response)  # type: ignore[no-any-return]


def _set_encoding(response: Any, name: str | None) -> None:
    response._set_encoding = name


def _text_of(response: Any) -> str:
    """Return the body as text, in the encoding that the task has set, or that of the header."""
    name = vars(response).get("_set_encoding")
    if name is None:
        return _text.__get__(response)  # type: ignore[no-any-return]
    try:
        codecs.lookup(name)
    except LookupError:
        name = "utf-8"
    return response.content.decode(name, "replace")  # type: ignore[no-any-return]


def _is_redirect(response: Any) -> bool:
    """Return whether the response names another address."""
    return response.status in _REDIRECTS and "location" in response.headers


def install() -> None:
    """Add the parts to responses, which only locustfiles need."""
    kind: Any = _weir.ScriptResponse
    kind.iter_content, kind.iter_lines = iter_content, iter_lines
    kind.encoding, kind.text = property(_encoding_of, _set_encoding), property(_text_of)
    kind.apparent_encoding = property(lambda _: "utf-8")
    kind.is_redirect = property(_is_redirect)
