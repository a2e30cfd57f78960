"""Rate of a transport's attempts: `rate=` and `keys=`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeAlias

from weir._errors import UsageError
from weir._limiter import Limiter

if TYPE_CHECKING:
    from weir import _weir

__all__ = ["KeyedRate", "Keys", "Rate", "rate_of"]

Rate: TypeAlias = str | Iterable[str] | Limiter
Keys: TypeAlias = str | Callable[[Any], str]


class KeyedRate:
    """A limiter, and how a request has its key."""

    def __init__(self, limiter: Limiter, keys: Keys | None) -> None:
        self._limiter = limiter
        self._keys = keys

    def of(
        self, request: object, origin: tuple[bool, str, int], headers: list[tuple[bytes, bytes]]
    ) -> tuple[_weir.LimiterHandle, str]:
        """Find the limiter of this process, and the key of a request."""
        keys = self._keys
        if keys is None:
            key = f"{origin[1]}:{origin[2]}"
        elif isinstance(keys, str):
            name = keys.lower().encode("latin-1")
            key = next((value.decode("latin-1") for known, value in headers if known.lower() == name), "")
        else:
            key = keys(request)
            if not isinstance(key, str):
                raise TypeError(f"keys: the function must return text, not {type(key).__name__}")
        return self._limiter._ours(), key


def rate_of(rate: Rate | None, keys: Keys | None) -> KeyedRate | None:
    """Check the options of a rate.

    Raises:
        UsageError: A limit is invalid.
        TypeError: A value is of another type.
    """
    if rate is None:
        if keys is not None:
            raise TypeError("keys: they are the keys of rate=; give a rate such as '20/1s', too")
        return None
    if not (keys is None or isinstance(keys, str) or callable(keys)):
        raise TypeError(f"keys: the name of a header, or a function of the request, not {type(keys).__name__}")
    if not isinstance(rate, Limiter):
        if not isinstance(rate, str | Iterable):
            raise TypeError(f"rate: text such as '20/1s', or a weir.Limiter, not {type(rate).__name__}")
        try:
            rate = Limiter(*([rate] if isinstance(rate, str) else rate))
        except UsageError as error:
            raise UsageError(f"rate: {str(error).removeprefix('limits: ')}") from None
    return KeyedRate(rate, keys)
