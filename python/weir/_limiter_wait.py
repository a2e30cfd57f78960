"""Waits of a limiter: a thread, a task of asyncio, a task of trio. No wait has a thread of its own, or holds a lock."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import threading
from collections.abc import Awaitable
from math import inf
from typing import Any, Final, Protocol

__all__ = ["AsyncGate", "ThreadGate", "async_gate"]

_LONGEST_S: Final = 1.0
"""Longest wait of a thread; it looks again after it."""


class AsyncGate(Protocol):
    """Wait of a task."""

    def wake(self) -> None:
        """End the wait, from any thread; the next one, if there is none."""

    def wait(self, seconds: float) -> Awaitable[None]:
        """Wait until woken, or for this time."""


class ThreadGate:
    """Wait of a thread."""

    __slots__ = ("_lock",)

    def __init__(self) -> None:
        """Make a gate that is closed."""
        self._lock = threading.Lock()
        self._lock.acquire()

    def wake(self) -> None:
        """End the wait, from any thread; the next one, if there is none."""
        # One that is open already stays open.
        with contextlib.suppress(RuntimeError):
            self._lock.release()

    def wait(self, seconds: float) -> None:
        """Wait until woken, for this time, or for a second; Ctrl-C ends it."""
        # A signal that another thread takes does not end the wait.
        self._lock.acquire(timeout=min(seconds, _LONGEST_S))


class _LoopGate:
    """Wait of a task of asyncio; of uvloop, too."""

    __slots__ = ("_future", "_is_open", "_loop", "_thread")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._thread = threading.get_ident()
        self._future: asyncio.Future[None] | None = None
        self._is_open = False

    def wake(self) -> None:
        if threading.get_ident() == self._thread:
            self._open()
        else:
            # A loop that is closed has no task that waits.
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._open)

    def _open(self) -> None:
        self._is_open = True
        if self._future is not None and not self._future.done():
            self._future.set_result(None)

    async def wait(self, seconds: float) -> None:
        if not self._is_open:
            self._future = self._loop.create_future()
            timer = None if seconds == inf else self._loop.call_later(seconds, self._open)
            try:
                await self._future
            finally:
                self._future = None
                if timer is not None:
                    timer.cancel()
        self._is_open = False


class _TrioGate:
    """Wait of a task of trio."""

    __slots__ = ("_event", "_token", "_trio")

    def __init__(self, trio: Any) -> None:
        self._trio = trio
        self._token = trio.lowlevel.current_trio_token()
        self._event = trio.Event()

    def wake(self) -> None:
        with contextlib.suppress(self._trio.RunFinishedError):
            self._token.run_sync_soon(self._open)

    def _open(self) -> None:
        self._event.set()

    async def wait(self, seconds: float) -> None:
        with self._trio.move_on_after(seconds):
            await self._event.wait()
        self._event = self._trio.Event()


def async_gate() -> AsyncGate:
    """Return a gate for the task that calls: of trio, if it runs here, otherwise of asyncio."""
    trio = sys.modules.get("trio")
    if trio is not None:
        with contextlib.suppress(RuntimeError):
            return _TrioGate(trio)
    return _LoopGate(asyncio.get_running_loop())
