"""Headers of requests and answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

__all__ = ["HeaderTypes", "Headers"]

HeaderTypes: TypeAlias = Mapping[str, str] | Iterable[tuple[str, str]]
"""Headers as callers give them: a mapping, or pairs of name and value."""


class Headers(Mapping[str, str]):
    """Headers: names in any case, values in the order of their arrival.

    >>> response.headers["Content-Type"], response.headers.get_list("Set-Cookie")
    ('application/json', ['a=1', 'b=2'])
    """

    __module__ = "weir"
    __slots__ = ("_found", "_pairs")

    def __init__(self, headers: HeaderTypes | None = None) -> None:
        """Take names and values; a name may come several times."""
        pairs = headers.items() if isinstance(headers, Mapping) else headers or ()
        self._pairs = tuple((str(name).lower(), str(value)) for name, value in pairs)
        self._found: dict[str, list[str]] = {}
        for name, value in self._pairs:
            self._found.setdefault(name, []).append(value)

    @classmethod
    def _of(cls, raw: Iterable[tuple[bytes, bytes]]) -> Headers:
        # A header is bytes; latin-1 loses none of them.
        return cls((name.decode("ascii"), value.decode("latin-1")) for name, value in raw)

    def __getitem__(self, name: str) -> str:
        """Return the value; of several, all of them with commas between."""
        return ", ".join(self._found[name.lower()])

    def __iter__(self) -> Iterator[str]:
        """Go through the names, in lower case, each once."""
        return iter(self._found)

    def __len__(self) -> int:
        """Count the names."""
        return len(self._found)

    def __contains__(self, name: object) -> bool:
        """Tell whether there is such a header."""
        return isinstance(name, str) and name.lower() in self._found

    def __eq__(self, other: object) -> bool:
        """Compare names in any case, and values."""
        if isinstance(other, Headers):
            return self._found == other._found
        if isinstance(other, Mapping):
            return self == Headers(other)
        return NotImplemented

    def __hash__(self) -> int:
        """Agree with `==`."""
        return hash(tuple(sorted((name, tuple(values)) for name, values in self._found.items())))

    def __repr__(self) -> str:
        """Show them; what lets one in is hidden."""
        shown = [(name, "***" if name in _SECRET else value) for name, value in self._pairs]
        return f"weir.Headers({shown})"

    def get_list(self, name: str) -> list[str]:
        """Return all values of this name."""
        return list(self._found.get(name.lower(), ()))

    def multi_items(self) -> list[tuple[str, str]]:
        """Return all names and values, in order."""
        return list(self._pairs)


_SECRET = {"authorization", "cookie", "proxy-authorization", "set-cookie", "x-api-key"}
