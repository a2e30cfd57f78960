"""Headers of requests and responses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

from weir import _weir

__all__ = ["HeaderTypes", "Headers"]

HeaderTypes: TypeAlias = Mapping[str, str] | Iterable[tuple[str, str]]
"""Headers as arguments: a mapping, or pairs of name and value."""


class Headers(Mapping[str, str]):
    """Case-insensitive mapping of header names to values, in order of arrival.

    >>> response.headers["Content-Type"], response.headers.get_list("Set-Cookie")
    ('application/json', ['a=1', 'b=2'])
    """

    __module__ = "weir"
    __slots__ = ("_found", "_pairs")

    def __init__(self, headers: HeaderTypes | None = None) -> None:
        """Copy names and values; a name may occur several times."""
        pairs = headers.items() if isinstance(headers, Mapping) else headers or ()
        self._pairs = tuple((str(name).lower(), str(value)) for name, value in pairs)
        self._found: dict[str, list[str]] = {}
        for name, value in self._pairs:
            self._found.setdefault(name, []).append(value)

    @classmethod
    def _of(cls, raw: Iterable[tuple[bytes, bytes]]) -> Headers:
        # Headers are bytes; latin-1 maps each to a character.
        return cls((name.decode("ascii"), value.decode("latin-1")) for name, value in raw)

    def __getitem__(self, name: str) -> str:
        """Return the value; several are joined by commas."""
        return ", ".join(self._found[name.lower()])

    def __iter__(self) -> Iterator[str]:
        """Iterate over distinct names, in lower case."""
        return iter(self._found)

    def __len__(self) -> int:
        """Return the number of distinct names."""
        return len(self._found)

    def __contains__(self, name: object) -> bool:
        """Check whether the name occurs, in any case."""
        return isinstance(name, str) and name.lower() in self._found

    def __eq__(self, other: object) -> bool:
        """Compare names, in any case, and values."""
        if isinstance(other, Headers):
            return self._found == other._found
        if isinstance(other, Mapping):
            return self == Headers(other)
        return NotImplemented

    def __hash__(self) -> int:
        """Return a hash that is consistent with `==`."""
        return hash(tuple(sorted((name, tuple(values)) for name, values in self._found.items())))

    def __repr__(self) -> str:
        """Show names and values; credentials are hidden."""
        shown = [(name, "***" if _weir.is_secret_name(name) else value) for name, value in self._pairs]
        return f"weir.Headers({shown})"

    def get_list(self, name: str) -> list[str]:
        """List the values of a name.

        Returns:
            All values, in order; an empty list for an unknown name.
        """
        return list(self._found.get(name.lower(), ()))

    def multi_items(self) -> list[tuple[str, str]]:
        """List all names and values.

        Returns:
            Pairs of name, in lower case, and value, in order.
        """
        return list(self._pairs)
