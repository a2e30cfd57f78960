"""Time of `weir.retry`: clocks, and waits in threads and event loops. Tests replace it."""

from __future__ import annotations

import sys
import time

from weir import _decisions

__all__: list[str] = []

# The clock of calls of the core, which may use the same budget.
now_ns = _decisions.now_ns
wall_ns = time.time_ns


def sleep_until(at_ns: int) -> None:
    """Block the thread until this time, never less."""
    while (left := at_ns - now_ns()) > 0:
        time.sleep(left / 1e9)


async def wait_until(at_ns: int) -> None:
    """Suspend the task until this time, never less: of asyncio, or of trio where it runs."""
    trio = sys.modules.get("trio")
    if trio is not None and trio.lowlevel.in_trio_task():
        sleep = trio.sleep
    else:
        from asyncio import sleep  # noqa: PLC0415  is there where a coroutine of asyncio runs
    # A loop may wake a task some microseconds early.
    while (left := at_ns - now_ns()) > 0:
        await sleep(left / 1e9)
