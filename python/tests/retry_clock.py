"""Virtual time for tests of `weir.retry`, and its four forms behind one call."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

import weir
from weir import _retry_clock

FORMS = ("function", "coroutine", "loop", "awaited loop")


class Clock:
    """Time that passes by waits and `advance` alone."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Replace the time of `weir.retry` until the end of the test."""
        self.ns = 10**15
        self.wall_offset_ns = 1_700_000_000 * 10**9 - self.ns
        self.waits: list[float] = []
        monkeypatch.setattr(_retry_clock, "now_ns", lambda: self.ns)
        monkeypatch.setattr(_retry_clock, "wall_ns", lambda: self.ns + self.wall_offset_ns)
        monkeypatch.setattr(_retry_clock, "sleep_until", self._sleep)
        monkeypatch.setattr(_retry_clock, "wait_until", self._wait)

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self.ns += round(seconds * 1e9)

    def _sleep(self, at_ns: int) -> None:
        self.waits.append(max(0, at_ns - self.ns) / 1e9)
        self.ns = max(self.ns, at_ns)

    async def _wait(self, at_ns: int) -> None:
        self._sleep(at_ns)
        await asyncio.sleep(0)


def run(form: str, policy: weir.retry, function: Callable[[], Any]) -> Any:
    """Call a function with retries in one of the forms."""
    if form == "function":
        return policy(function)()
    if form == "loop":
        return _in_loop(policy, function)

    async def coroutine() -> Any:
        return function()

    if form == "coroutine":
        return asyncio.run(policy(coroutine)())
    return asyncio.run(_in_awaited_loop(policy, coroutine))


def _in_loop(policy: weir.retry, function: Callable[[], Any]) -> Any:
    for attempt in policy:
        with attempt:
            attempt.result = function()
    return attempt.result


async def _in_awaited_loop(policy: weir.retry, function: Callable[[], Any]) -> Any:
    async for attempt in policy:
        with attempt:
            attempt.result = await function()
    return attempt.result
