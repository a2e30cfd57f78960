"""Waits of coroutines for a call in flight."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Any

from weir._errors import UsageError

if TYPE_CHECKING:
    from weir import _weir

__all__ = ["changed", "changed_elsewhere"]


async def changed(streamed: _weir.StreamedCallHandle, timeout: float | None) -> bool:
    """Wait for a change on the loop of the call; False after the timeout."""
    future = streamed.changed()
    if timeout is None:
        await future
        return True
    timer = future.get_loop().call_later(timeout, _expire, future)
    try:
        return await future is None
    finally:
        timer.cancel()


def _expire(future: asyncio.Future[bool | None]) -> None:
    if not future.done():
        future.set_result(False)


async def changed_elsewhere(streamed: _weir.StreamedCallHandle, timeout: float | None) -> bool:
    """Wait for a change on a loop of trio, by a thread; False after the timeout."""
    trio: Any = sys.modules.get("trio")
    if trio is None:
        raise UsageError("this event loop is neither asyncio's nor trio's")
    # A limiter of its own: open streams would otherwise hold all of trio's threads.
    limiter = trio.CapacityLimiter(1)
    changed: bool = await trio.to_thread.run_sync(streamed.wait, timeout, abandon_on_cancel=True, limiter=limiter)
    return changed
