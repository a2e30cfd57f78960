"""`weir.Limiter`: the key windows of the sender, for any code."""

from __future__ import annotations

import logging
import secrets
import threading
import weakref
from collections.abc import Callable, Iterable
from functools import partial
from math import inf
from os import PathLike, register_at_fork
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, overload

from weir import _weir
from weir._errors import LimiterTimeout, UsageError
from weir._limiter_slot import LimiterSlot
from weir._limiter_use import LimiterUse
from weir._limiter_wait import ThreadGate, async_gate
from weir._time import Time

if TYPE_CHECKING:
    from types import TracebackType


__all__ = ["Limiter"]

_Function = TypeVar("_Function", bound=Callable[..., Any])
_Wakes = tuple[list[int], str | None]

_WORK_S: Final = 5.0

_log = logging.getLogger("weir")
_all: weakref.WeakSet[Limiter] = weakref.WeakSet()


class Limiter:
    """Keeps requests of each key within rate limits, as the *service* counts them: at their arrival.

    >>> limiter = weir.Limiter("20/1s", "1000/1h")
    >>> with limiter("api-key-1"):
    ...     response = httpx.get(url)
    >>> async with limiter("api-key-1") as slot:
    ...     slot.update(await client.get(url))
    >>> @limiter
    ... def fetch(): ...

    A block waits for its slot at its begin, first in, first out for each key; its end is the latest proof that the
    request has arrived. Threads, event loops and tasks may share a limiter, and with `shared` processes and machines.
    """

    __module__ = "weir"

    def __init__(
        self,
        *limits: str,
        weight_limits: str | Iterable[str] = (),
        delay_bound: Time | Literal["learn"] | None = "learn",
        max_pause: Time = 3600.0,
        shared: str | PathLike[str] | None = None,
        unreachable: Literal["raise", "local"] = "raise",
    ) -> None:
        """Make a limiter.

        Args:
            limits: Rate limits of each key, in requests: ``"20/1s"``, ``"bucket:100/1m"``, ``"concurrency:5"``; all
                apply.
            weight_limits: The same for the weights of requests: ``"30000/1m"`` tokens, for example.
            delay_bound: Longest time from the begin of a block to the arrival of its request; ``"learn"``, or None if
                only the end of a block shows that a request has arrived.
            max_pause: Longest pause of a key by ``Retry-After`` or a reset.
            shared: Place that processes share: a path, for those of one machine (a folder, made if there is none), or
                ``"redis://host:6379/0?name=orders"``. Default: the memory of this process.
            unreachable: ``"raise"``: while the place is unreachable, waits raise `LimiterError`; ``"local"``: each
                process goes on with limits of its own, and logs a warning.

        Raises:
            UsageError: A value is invalid, or the place is in use with other limits or by another program.
            LimiterError: The path cannot be opened.
        """
        self._form: dict[str, object] = {
            "limits": limits,
            "weight_limits": weight_limits,
            "delay_bound": delay_bound,
            "max_pause": max_pause,
            "shared": shared,
            "unreachable": unreachable,
        }
        self._wakers: dict[int, Callable[[], None]] = {}
        self._default = LimiterUse(self, "", 1, None, False)
        self._lock = threading.Lock()
        self._handle = self._open()
        _all.add(self)

    def _open(self) -> _weir.LimiterHandle:
        handle = _weir.LimiterHandle({**self._form, "holder": secrets.randbits(63)})
        weakref.finalize(self, handle.close)
        handle.set_wake(partial(_wake_all, self._wakers))
        if handle.is_remote():
            args = (handle, self._wakers)
            threading.Thread(target=_work, args=args, name="weir-limiter", daemon=True).start()
        return handle

    def _ours(self) -> _weir.LimiterHandle:
        handle = self._handle
        if handle.is_ours():
            return handle
        if self._form["shared"] is None:
            raise UsageError(
                "the limiter belongs to the process before the fork: together they would exceed the limits; make one "
                "in each process, or give shared='limits.db'"
            )
        with self._lock:
            if not self._handle.is_ours():
                self._handle = self._open()
            return self._handle

    def _forked(self) -> None:
        # Locks may be those of threads that this process does not have.
        self._lock = threading.Lock()
        self._wakers = {}
        self._handle.release_in_child()

    def acquire(self, key: str = "", weight: int = 1, timeout: Time | None = None) -> LimiterSlot:
        """Wait for a slot; the GIL is released, and Ctrl-C leaves the line.

        Args:
            key: Key whose limits apply, for example an API key or a host.
            weight: Weight in the weight limits.
            timeout: Longest wait; 0 does not wait. Default: no limit.

        Returns:
            The slot: use it as a block, or end it with `done`, `update` or `cancel`.

        Raises:
            LimiterTimeout: No slot was free within `timeout`; nothing was used.
            LimiterError: The shared place is unreachable.
            UsageError: The weight is above a limit.
        """
        gate = ThreadGate()
        with _Place(self, gate.wake, key, weight, timeout) as place:
            while (slot := place.slot()) is None:
                gate.wait(place.wait_s)
            return slot

    async def acquire_async(self, key: str = "", weight: int = 1, timeout: Time | None = None) -> LimiterSlot:
        """Wait for a slot, as `acquire`, in a task of asyncio (or uvloop) or trio; a cancelled one leaves the line.

        Args:
            key: Key whose limits apply.
            weight: Weight in the weight limits.
            timeout: Longest wait; 0 does not wait. Default: no limit.

        Returns:
            The slot.
        """
        gate = async_gate()
        with _Place(self, gate.wake, key, weight, timeout) as place:
            while (slot := place.slot()) is None:
                await gate.wait(place.wait_s)
            return slot

    def try_acquire(self, key: str = "", weight: int = 1) -> LimiterSlot | None:
        """Return a slot if one is free now, and no other user waits for the key; otherwise None."""
        try:
            return self.acquire(key, weight, 0)
        except LimiterTimeout:
            return None

    async def try_acquire_async(self, key: str = "", weight: int = 1) -> LimiterSlot | None:
        """Return a slot if one is free now, as `try_acquire`, without blocking the event loop."""
        try:
            return await self.acquire_async(key, weight, 0)
        except LimiterTimeout:
            return None

    @overload
    def __call__(self, function: _Function, /) -> _Function: ...

    @overload
    def __call__(
        self,
        name: str | None = None,
        /,
        *,
        key: str | Callable[..., str] | None = None,
        weight: int = 1,
        timeout: Time | None = None,
        update: bool = False,
    ) -> LimiterUse: ...

    def __call__(
        self,
        function: Any = None,
        /,
        *,
        key: Any = None,
        weight: int = 1,
        timeout: Time | None = None,
        update: bool = False,
    ) -> Any:
        """Return what `with`, `async with` and decorators use; ``@limiter`` decorates for the key ``""``.

        Args:
            function: Key whose limits apply, ``limiter("key")``; or the function that ``@limiter`` decorates.
            key: The key by name; of a decorator also a function of the call's arguments:
                ``@limiter(key=lambda user, text: user.id)``.
            weight: Weight in the weight limits.
            timeout: Longest wait for a slot.
            update: Whether the result of a decorated function is a response that reports limits.
        """
        if callable(function):
            return self._default(function)
        for given in (function, key):
            if not (given is None or isinstance(given, str) or callable(given)):
                raise TypeError(f"key: a text, or by name a function that returns one, not {type(given).__name__}")
        chosen = key if function is None else function
        return LimiterUse(self, "" if chosen is None else chosen, weight, timeout, update)

    def _wake(self, wakes: _Wakes) -> None:
        _wake_all(self._wakers, wakes)

    def _leave(self, handle: _weir.LimiterHandle, ticket: int, slot: _weir.LimiterSlotHandle | None) -> None:
        # Ctrl-C may come after the slot.
        self._wake(handle.cancel(ticket) if slot is None else slot.unsent())

    def __enter__(self) -> LimiterSlot:
        """Wait for a slot of the key ``""``."""
        return self._default.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the slot."""
        self._default.__exit__(kind, error, trace)

    async def __aenter__(self) -> LimiterSlot:
        """Wait for a slot of the key ``""``."""
        return await self._default.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the slot."""
        self._default.__exit__(kind, error, trace)


class _Place:
    """Place in the line of a key, which is left at the end of its block."""

    __slots__ = ("_handle", "_limiter", "_slot", "_ticket", "_until", "_weight", "wait_s")

    def __init__(self, limiter: Limiter, wake: Callable[[], None], key: str, weight: int, timeout: Time | None) -> None:
        self._limiter, self._weight = limiter, weight
        self._handle = limiter._ours()
        self._ticket, longest = self._handle.join(key, weight, timeout)
        self._until = None if longest is None else monotonic() + longest
        self._slot: _weir.LimiterSlotHandle | None = None
        limiter._wakers[self._ticket] = wake

    def __enter__(self) -> _Place:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self._limiter._leave(self._handle, self._ticket, self._slot)
        self._limiter._wakers.pop(self._ticket, None)

    def slot(self) -> LimiterSlot | None:
        """Return the slot if there is one; `wait_s` is the time until it may be there."""
        self._slot, wait_s, is_sure, wakes = self._handle.look(self._ticket)
        self._limiter._wake(wakes)
        if self._slot is not None:
            return LimiterSlot(self._slot, self._weight, self._limiter._wake)
        self.wait_s = _time_left(wait_s, self._until, is_sure)
        return None


def _time_left(wait: float, until: float | None, is_sure: bool) -> float:
    """Return the time of the next wait; the timeout is over only if the limits were asked."""
    if until is None or not is_sure:
        return wait
    left = until - monotonic()
    if left <= 0:
        free = "" if wait == inf else f"; the next one may be free in {wait:.3g} s"
        raise LimiterTimeout(f"no slot within the timeout{free}")
    return min(wait, left)


def _wake_all(wakers: dict[int, Callable[[], None]], wakes: _Wakes) -> None:
    tickets, notice = wakes
    for ticket in tickets:
        waker = wakers.get(ticket)
        if waker is not None:
            waker()
    if notice is not None:
        _log.warning("limiter: %s", notice)


def _work(handle: _weir.LimiterHandle, wakers: dict[int, Callable[[], None]]) -> None:
    """Make the round trips of a limiter, until it is closed."""
    while (wakes := handle.work(_WORK_S)) is not None:
        _wake_all(wakers, wakes)


def _forked() -> None:
    for limiter in list(_all):
        limiter._forked()


register_at_fork(after_in_child=_forked)
