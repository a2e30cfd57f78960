"""Use of a limiter: as a block, or as a decorator."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from contextvars import ContextVar
from types import TracebackType
from typing import Any, Protocol, TypeVar

from weir._errors import UsageError
from weir._limiter_slot import LimiterSlot, response_of
from weir._time import Time

__all__ = ["LimiterUse"]

_Function = TypeVar("_Function", bound=Callable[..., Any])

_open: ContextVar[tuple[LimiterSlot, ...]] = ContextVar("weir_limiter_open", default=())
"""Slots of the blocks around the code that runs, the innermost last."""


class _Slots(Protocol):
    def acquire(self, key: str, weight: int, timeout: Time | None) -> LimiterSlot: ...

    async def acquire_async(self, key: str, weight: int, timeout: Time | None) -> LimiterSlot: ...


class LimiterUse:
    """Use of a limiter with a key: ``with limiter("key"):``, ``async with``, or a decorator."""

    __slots__ = ("_key", "_limiter", "_slots", "_timeout", "_update", "_weight")

    def __init__(
        self, limiter: _Slots, key: str | Callable[..., str], weight: int, timeout: Time | None, update: bool
    ) -> None:
        """Make a use; limiters do."""
        self._limiter = limiter
        self._key = key
        self._weight = weight
        self._timeout = timeout
        self._update = update
        self._slots: list[LimiterSlot] = []

    def _text(self) -> str:
        if isinstance(self._key, str):
            return self._key
        raise UsageError("key: a function is for decorators; give a block the key itself")

    def _entered(self, slot: LimiterSlot) -> LimiterSlot:
        self._slots.append(slot)
        _open.set((*_open.get(), slot))
        return slot

    def _left(self) -> LimiterSlot:
        """Return the slot of the block that is left."""
        around = _open.get()
        slot = next((slot for slot in reversed(around) if slot in self._slots), None)
        if slot is None:
            # The block was entered in another context, as a fixture or a dependency is.
            return self._slots.pop(0)
        _open.set(tuple(other for other in around if other is not slot))
        self._slots.remove(slot)
        return slot

    def __enter__(self) -> LimiterSlot:
        """Wait for a slot."""
        return self._entered(self._limiter.acquire(self._text(), self._weight, self._timeout))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the slot."""
        self._left().__exit__(kind, error, trace)

    async def __aenter__(self) -> LimiterSlot:
        """Wait for a slot."""
        return self._entered(await self._limiter.acquire_async(self._text(), self._weight, self._timeout))

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the slot."""
        self._left().__exit__(kind, error, trace)

    def __call__(self, function: _Function) -> _Function:
        """Decorate a function: each call waits for a slot, and its return ends it."""
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise TypeError("a generator sends when it is iterated over; use the limiter within it")
        key = self._key

        def key_of(args: tuple[Any, ...], names: dict[str, Any]) -> str:
            return key if isinstance(key, str) else key(*args, **names)

        def finished(slot: LimiterSlot, result: Any) -> Any:
            if self._update and response_of(result) is not None:
                slot.update(result)
            return result

        wrapper: Any
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def wrapper(*args: Any, **names: Any) -> Any:
                slot = await self._limiter.acquire_async(key_of(args, names), self._weight, self._timeout)
                with slot:
                    return finished(slot, await function(*args, **names))
        else:

            @functools.wraps(function)
            def wrapper(*args: Any, **names: Any) -> Any:
                with self._limiter.acquire(key_of(args, names), self._weight, self._timeout) as slot:
                    return finished(slot, function(*args, **names))

        return wrapper  # type: ignore[no-any-return]
