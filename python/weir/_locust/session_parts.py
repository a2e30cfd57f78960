"""Headers and cookies of a client."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any

from weir import _weir
from weir._user_factory import lines_of

__all__ = ["SessionCookies", "SessionHeaders"]


class SessionHeaders(MutableMapping[str, str]):
    """Headers of all requests of a client, in any case."""

    def __init__(self, session: _weir.ScriptSession, headers: Mapping[str, str]) -> None:
        """Set the headers of a client."""
        self._session = session
        self._found = {name.lower(): (name, value) for name, value in headers.items() if value is not None}
        self._write()

    def _write(self) -> None:
        texts = {
            name: value.decode() if isinstance(value, bytes) else str(value) for name, value in self._found.values()
        }
        self._session.set_head(lines_of(texts))

    def __getitem__(self, name: str) -> str:
        return self._found[name.lower()][1]

    def __setitem__(self, name: str, value: str | None) -> None:
        if value is None:
            self._found.pop(name.lower(), None)
        else:
            self._found[name.lower()] = (name, value)
        self._write()

    def __delitem__(self, name: str) -> None:
        del self._found[name.lower()]
        self._write()

    def __iter__(self) -> Iterator[str]:
        return iter([name for name, _ in self._found.values()])

    def __len__(self) -> int:
        return len(self._found)

    def __repr__(self) -> str:
        return repr(dict(self.items()))


class SessionCookies(MutableMapping[str, str]):
    """Cookies of a user, by name."""

    def __init__(self, session: _weir.ScriptSession) -> None:
        """Look at the cookies of a client."""
        self._session = session

    def _pairs(self) -> dict[str, str]:
        return {name: value for name, value, _, _ in reversed(self._session.cookies())}

    def __getitem__(self, name: str) -> str:
        return self._pairs()[name]

    def __setitem__(self, name: str, value: str) -> None:
        self.set(name, value)

    def __delitem__(self, name: str) -> None:
        if name not in self._pairs():
            raise KeyError(name)
        self.set(name, None)

    def __iter__(self) -> Iterator[str]:
        return iter(self._pairs())

    def __len__(self) -> int:
        return len(self._pairs())

    def __repr__(self) -> str:
        return repr(self._pairs())

    def set(self, name: str, value: str | None, domain: str = "", path: str = "/", **_: Any) -> None:
        """Set a cookie; without a value it is removed."""
        field = f"{name}={value or ''}; Path={path}" + ("; Max-Age=0" if value is None else "")
        if domain:
            field += f"; Domain={domain}"
        self._session.set_cookie(field, f"http://{domain.lstrip('.')}/" if domain else None)

    def get_dict(self, **_: Any) -> dict[str, str]:
        """Return the cookies as a dictionary."""
        return self._pairs()

    def clear(self, *_: Any) -> None:
        """Remove all cookies."""
        self._session.clear_cookies()
