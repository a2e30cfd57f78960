"""What responses of tasks do at the end of a `with` block, and with an error status."""

from __future__ import annotations

import sys
from http.cookies import SimpleCookie
from typing import Any

__all__: list[str] = []


class HTTPError(OSError):
    """Status of a response that is an error, where the library requests is not loaded."""

    response: Any = None


def raise_for_status(response: Any) -> None:
    """Raise an exception for a status from 400 on, or for no response."""
    error = exception_of(response)
    if error is not None:
        raise error


def exception_of(response: Any) -> Exception | None:
    """Return the exception of a response that is not a success; the task decides, or the status."""
    decided = response.decided
    if decided is not None:
        return Exception(decided) if decided else None
    if response.failure_kind is not None:
        return _error(ConnectionError, f"{response.failure_kind}: {response.url}", response)
    if response.status >= 400:
        side = "Client" if response.status < 500 else "Server"
        text = f"{response.status} {side} Error: {response.reason} for url: {response.url}"
        return _error(HTTPError, text, response)
    return None


def leave(response: Any, error: BaseException) -> bool:
    """End a `with` block that raises an exception; return whether it ends there."""
    was_decided = response.decided is not None
    if not was_decided:
        if type(error).__name__ not in {"ResponseError", "CatchResponseError"}:
            return False
        response.failure(error)
    response.call_on_leave()
    return not was_decided


class ResponseCookies(dict[str, str]):
    """Cookies that a response sets, by name."""

    def get_dict(self, **_: Any) -> dict[str, str]:
        """Return the cookies as a dictionary."""
        return dict(self)


def cookies_of(response: Any) -> ResponseCookies:
    """Return the cookies that a response sets."""
    found = ResponseCookies()
    for field in response.headers.get_list("set-cookie"):
        name, _, value = field.partition(";")[0].partition("=")
        found[name.strip()] = SimpleCookie().value_decode(value.strip())[0]
    return found


def _error(own: type[Exception], text: str, response: Any) -> Exception:
    """Return an exception of the library requests, if the script has loaded it."""
    exceptions = getattr(sys.modules.get("requests"), "exceptions", None)
    kind = getattr(exceptions, own.__name__, None)
    if kind is None:
        made: Any = own(text)
        made.response = response
        return made  # type: ignore[no-any-return]
    return kind(text, response=None)  # type: ignore[no-any-return]
