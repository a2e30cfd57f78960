"""`weir.aiohttp.Middleware` against the decision that it carries out, with random schedules in virtual time."""

from __future__ import annotations

import asyncio
import copy
import heapq
import random
import selectors
from typing import Any

import aiohttp
import pytest
from multidict import CIMultiDict
from yarl import URL

import weir
from weir import _decisions, _retry_clock, _weir
from weir.aiohttp import Middleware, attempts

Plan = list[tuple[float, int | Exception]]
"""For each attempt: how long it takes, and its status or exception."""


class VirtualLoop(asyncio.SelectorEventLoop):
    """Event loop whose time passes when it would wait."""

    def __init__(self) -> None:
        """Begin long after zero."""
        self.now = 1000.0
        super().__init__(Selector(self))

    def time(self) -> float:
        """Virtual time in seconds."""
        return self.now


class Selector(selectors.SelectSelector):
    """Selector that does not wait."""

    def __init__(self, loop: VirtualLoop) -> None:
        """Make a selector of a loop."""
        super().__init__()
        self.loop = loop

    def select(self, timeout: float | None = None) -> list[Any]:
        """Let time pass in place of a wait."""
        assert timeout is not None, "the loop would wait without end"
        self.loop.now += timeout
        return super().select(0)


class Request:
    """What the middleware reads of a request."""

    def __init__(self, loop: VirtualLoop) -> None:
        """Make a GET."""
        self.loop = loop
        self.method = "GET"
        self.url = URL("http://localhost:8080/")
        self.headers: CIMultiDict[str] = CIMultiDict()
        self.body = b""


class Response:
    """What the middleware reads of a response."""

    connection = None
    history = ()
    request_info: Any = None

    def __init__(self, status: int, open_responses: set[Response]) -> None:
        """Make a response that has to be closed, or returned."""
        self.status = status
        self.headers: CIMultiDict[str] = CIMultiDict()
        self.content = self
        self.open_responses = open_responses
        open_responses.add(self)

    async def read(self) -> bytes:
        """Return the body."""
        return b""

    def iter_any(self) -> Response:
        """Return the parts of the body."""
        return self

    def __aiter__(self) -> Response:
        """Return the parts of the body."""
        return self

    async def __anext__(self) -> bytes:
        """Return no part."""
        raise StopAsyncIteration

    def close(self) -> None:
        """Close the response."""
        self.open_responses.discard(self)


def expected(rules: _decisions.CallRulesHandle, plan: Plan, now: int, deadline: int | None) -> tuple[str, list[Any]]:
    """The verdict and the attempts by the decision alone, with events in the order of their times."""
    decision, actions = rules.start(now, deadline, "GET", True, "localhost:8080")
    ends: list[tuple[int, int]] = []
    running: set[int] = set()
    made: list[Any] = []
    wake: int | None = None
    while True:
        for action, value, reason in actions:
            if action == "launch":
                running.add(value)
                made.append((reason, now))
                heapq.heappush(ends, (now + round(plan[value][0] * 1e9), value))
            elif action == "cancel":
                running.discard(value)
            elif action == "wake":
                wake = value
            elif action == "finish":
                return reason, made
        while ends and ends[0][1] not in running:
            heapq.heappop(ends)
        if ends and (wake is None or ends[0][0] < wake):
            now, number = heapq.heappop(ends)
            running.discard(number)
            status = plan[number][1]
            if isinstance(status, Exception):
                actions = decision.failed(now, number, None, "closed")
            elif status >= 500:
                actions = decision.failed(now, number, status)
            else:
                actions = decision.succeeded(now, number)
        else:
            assert wake is not None
            now, wake = wake, None
            actions = decision.tick(now)


@pytest.mark.parametrize("seed", range(250))
def test_the_attempts_are_those_of_the_decision(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(seed)
    loop = VirtualLoop()
    monkeypatch.setattr(_retry_clock, "now_ns", lambda: round(loop.now * 1e9))
    monkeypatch.setattr(random, "getrandbits", lambda bits: seed)

    # Times that differ, since events at the same time may come in either order.
    def time(most: float) -> float:
        return round(draw.uniform(0.001, most), 6)

    def outcome() -> int | Exception:
        choices: list[int | Exception] = [200, 200, 503, 500, aiohttp.ServerDisconnectedError()]
        return draw.choice(choices)

    plan: Plan = [(time(draw.choice([0.05, 0.5, 3.0])), outcome()) for _ in range(70)]
    hedges = [
        weir.Hedge(draw.choice([None, time(0.3)]), attempts=draw.choice([1, 2]))
        for _ in range(draw.choice([0, 0, 1, 2]))
    ]
    options: dict[str, Any] = {
        "timeout": draw.choice([None, time(1.0)]),
        "deadline": draw.choice([None, time(2.0)]),
        "hedge": hedges,
        "retries": weir.Retry(draw.choice([0, 1, 4]), backoff=(0.01, 0.2)),
        "success": draw.choice([None, weir.Success()]),
        "retry_methods": "safe",
        "max_response": None,
    }
    budget = draw.choice([None, weir.Budget(fraction=0, min_per_s=draw.choice([0, 2]), window=1)])
    middleware = Middleware(**options, budget=budget)
    rules = _decisions.CallRulesHandle(
        _weir.PolicyHandle({**options, "budget": None}),
        None if budget is None else _decisions.BudgetHandle(budget),
        seed,
    )
    open_responses: set[Response] = set()
    launched: list[int] = []

    async def handler(request: Any) -> Any:
        launched.append(round(loop.now * 1e9))
        takes, status = plan[len(launched) - 1]
        await asyncio.sleep(takes)
        if isinstance(status, Exception):
            raise copy.copy(status)
        return Response(status, open_responses)

    async def main() -> Any:
        try:
            return await middleware(Request(loop), handler)  # type: ignore[arg-type]
        except aiohttp.ClientError as error:
            return error

    began = round(loop.now * 1e9)
    deadline = None if rules.deadline is None else began + rules.deadline
    verdict, made = expected(rules, plan, began, deadline)
    try:
        found = loop.run_until_complete(main())
        log = attempts(found)
        loop.run_until_complete(asyncio.sleep(0))
        loop.run_until_complete(asyncio.sleep(0))
    finally:
        loop.close()
    assert [attempt.reason for attempt in log] == [reason for reason, _ in made]
    # The loop's time is a float.
    assert launched == pytest.approx([at for _, at in made], abs=2000)
    assert (verdict == "won") == any(attempt.won for attempt in log)
    if isinstance(found, Response):
        found.close()
    elif verdict == "deadline":
        assert isinstance(found, aiohttp.ServerTimeoutError | aiohttp.ClientResponseError)
    assert open_responses == set()


@pytest.mark.parametrize("status", [200, 503])
def test_of_two_responses_in_one_turn_of_the_loop_one_is_closed(status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    loop = VirtualLoop()
    monkeypatch.setattr(_retry_clock, "now_ns", lambda: round(loop.now * 1e9))
    middleware = Middleware(hedge=weir.Hedge(after=0.25))
    open_responses: set[Response] = set()
    together: asyncio.Future[None] = loop.create_future()

    async def handler(request: Any) -> Any:
        await together
        return Response(status, open_responses)

    async def main() -> Any:
        loop.call_later(0.5, together.set_result, None)
        return await middleware(Request(loop), handler)  # type: ignore[arg-type]

    try:
        found = loop.run_until_complete(main())
        loop.run_until_complete(asyncio.sleep(0.01))
        assert open_responses == {found}
    finally:
        loop.close()
