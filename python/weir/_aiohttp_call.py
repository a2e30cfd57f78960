"""Call of a session of aiohttp: its attempts are tasks, or the caller's own if they never run side by side."""

from __future__ import annotations

import asyncio
import copy
import logging
import sys
from dataclasses import dataclass
from typing import Any

from aiohttp import ClientHandlerType, ClientRequest, ClientResponse, ServerTimeoutError, payload

from weir import _decisions
from weir import _retry_clock as clock
from weir._aiohttp_outcome import AttemptOutcome, drained, kind_of, watch_body
from weir._response import Attempt

__all__: list[str] = []

_RETRIES, _HEDGES = ("retry", "retries"), ("hedge", "hedges")
_TIME_LEFT = "x-envoy-expected-rq-timeout-ms"

# Tasks of cancelled attempts, until they have ended.
_cancelled: set[asyncio.Task[AttemptOutcome]] = set()


class AttemptedCall:
    """Attempts of one request."""

    def __init__(
        self,
        rules: _decisions.CallRulesHandle,
        request: ClientRequest,
        handler: ClientHandlerType,
        deadline_ns: int | None,
        noted: set[str],
    ) -> None:
        """Start the call; nothing is sent yet."""
        self._rules = rules
        self._request = request
        self._handler = handler
        self._deadline_ns = deadline_ns
        self._tasks: dict[asyncio.Task[AttemptOutcome], int] = {}
        self._to_launch: list[int] = []
        self._log: list[_Entry] = []
        self._unsent = {_RETRIES: 0, _HEDGES: 0}
        self._wake_ns: int | None = None
        self._verdict: tuple[str, int] | None = None
        self._responses: dict[int, ClientResponse] = {}
        self._last_response: ClientResponse | None = None
        self._last_error: Exception | None = None
        self._upstream = f"{request.url.host}:{request.url.port}"
        self._began = clock.now_ns()
        can_resend = _can_resend(request, noted)
        self._decision, actions = rules.start(self._began, deadline_ns, request.method, can_resend, self._upstream)
        self._apply(actions)

    @property
    def has_extra_attempts(self) -> bool:
        """Whether there was another attempt than the first one, or a limit that denied it."""
        return len(self._log) > 1 or any(self._unsent.values())

    @property
    def is_rejected(self) -> bool:
        """Whether the response that `run` returned is none that the caller's rules accept."""
        return self._rules.is_strict and (self._verdict or ("", 0))[0] != "won"

    async def run(self) -> ClientResponse | None:
        """Make the attempts, and return the response of the call; None if the deadline passed without one."""
        in_turn = not self._rules.has_stages and sys.version_info >= (3, 11)
        try:
            await (self._run_in_turn() if in_turn else self._run_side_by_side())
        finally:
            for task in [*self._tasks]:
                self._cancel(task)
            for entry in self._log:
                entry.end(clock.now_ns(), "cancelled", None)
        verdict, number = self._verdict or ("failed", 0)
        if verdict == "won":
            response = self._responses.pop(number)
            watch_body(response, self._deadline_ns)
            self._close_last()
            return response
        if self._last_response is not None:
            watch_body(self._last_response, self._deadline_ns)
            return self._last_response
        if verdict == "failed" and self._last_error is not None:
            raise self._last_error
        return None

    def log(self, budget: _decisions.BudgetHandle | None) -> AttemptLog:
        """Attempts, of a call that has ended."""
        return AttemptLog(self._log, self._upstream, self._began, self._not_sent(budget))

    def _not_sent(self, budget: _decisions.BudgetHandle | None) -> str | None:
        """Attempts that the budget denied; or why a failure was not repeated."""
        some = [f"{count} {name if count > 1 else kind}" for (kind, name), count in self._unsent.items() if count]
        if not some:
            has_failed = self._rules.has_extra_attempts and (self._verdict or ("", 0))[0] == "failed"
            return self._decision.not_repeated(self._request.method) if has_failed else None
        return f"{' and '.join(some)} not sent: the retry budget ({budget}) was used up; budget=None lifts it"

    async def _run_in_turn(self) -> None:
        """Run attempts one after the other, in the caller's task."""
        while self._verdict is None:
            if not self._to_launch:
                await self._wait()
                continue
            number = self._to_launch.pop()
            left = self._left()
            try:
                if left is None:
                    outcome = await self._attempt(number)
                else:
                    async with asyncio.timeout(left) as timer:  # type: ignore[attr-defined,unused-ignore]
                        outcome = await self._attempt(number)
            except Exception as error:
                if left is not None and timer.expired():
                    self._tick()
                else:
                    self._on_error(number, error)
            else:
                self._on_outcome(number, outcome)

    async def _run_side_by_side(self) -> None:
        """Run attempts as tasks."""
        while self._verdict is None:
            while self._to_launch:
                number = self._to_launch.pop(0)
                self._tasks[asyncio.ensure_future(self._attempt(number))] = number
            if not self._tasks:
                await self._wait()
                continue
            left = self._left()
            done, _ = await asyncio.wait(self._tasks, timeout=left, return_when=asyncio.FIRST_COMPLETED)
            if not done:
                self._tick()
            # In the order of launches.
            for task in [task for task in self._tasks if task in done]:
                # An outcome before may have ended the call, or this attempt.
                if self._verdict is None and task in self._tasks:
                    self._on_end(self._tasks.pop(task), task)

    async def _wait(self) -> None:
        """Wait for the next retry."""
        if self._wake_ns is None:
            raise RuntimeError("a call without an attempt, a time and a verdict; this is a bug of weir")
        await clock.wait_until(self._wake_ns)
        self._tick()

    async def _attempt(self, number: int) -> AttemptOutcome:
        request = self._request if number == 0 and not self._rules.has_stages else _copied(self._request)
        if self._deadline_ns is not None:
            request.headers[_TIME_LEFT] = str(max(1, (self._deadline_ns - clock.now_ns()) // 1_000_000))
        response = await self._handler(request)
        try:
            status, kind = self._rules.head_failure(response.status, response.headers)
            is_failure = status is not None or kind is not None
            has_body = request.method != "HEAD" and response.status != 304
            if has_body and (self._rules.has_extra_attempts if is_failure else self._rules.needs_body):
                # The connection of a failed response is for the next attempt.
                body = await drained(response, self._rules.max_response)
                if not is_failure:
                    kind = "body" if body is None else self._rules.body_failure(body)
        except BaseException:
            response.close()
            raise
        return AttemptOutcome(response, status, kind)

    def _on_end(self, number: int, task: asyncio.Task[AttemptOutcome]) -> None:
        try:
            outcome = task.result()
        except Exception as error:
            self._on_error(number, error)
        else:
            self._on_outcome(number, outcome)

    def _on_outcome(self, number: int, outcome: AttemptOutcome) -> None:
        response, now = outcome.response, clock.now_ns()
        if outcome.status is None and outcome.kind is None:
            self._responses[number] = response
            self._log[number].end(now, "won", response.status)
            self._apply(self._decision.succeeded(now, number))
            if self._verdict != ("won", number):
                # The deadline was earlier.
                self._log[number].outcome = None
                self._log[number].end(now, "cancelled", None)
                self._responses.pop(number).close()
            return
        self._close_last()
        self._last_response = response
        self._log[number].end(now, outcome.kind or "status", outcome.status)
        retry_after, date = response.headers.get("Retry-After"), response.headers.get("Date")
        wall_ns = clock.wall_ns()
        actions = self._decision.failed(now, number, outcome.status, outcome.kind, retry_after, date, wall_ns)
        self._apply(actions)

    def _on_error(self, number: int, error: Exception) -> None:
        kind, now = kind_of(error), clock.now_ns()
        self._log[number].end(now, kind or "request", None, type(error).__name__)
        if kind is None:
            # No failure of the upstream.
            raise error
        self._last_error = error
        self._apply(self._decision.failed(now, number, None, kind))

    def _tick(self) -> None:
        now, self._wake_ns = max(clock.now_ns(), self._wake_ns or 0), None
        self._apply(self._decision.tick(now))

    def _apply(self, actions: list[tuple[str, int, str]]) -> None:
        for action, value, reason in actions:
            if action == "launch":
                self._to_launch.append(value)
                self._log.append(_Entry(reason, clock.now_ns()))
            elif action == "wake":
                self._wake_ns = value
            elif action == "unsent":
                self._unsent[_RETRIES if reason == "retry" else _HEDGES] += 1
            elif action == "finish":
                self._verdict = (reason, value)
            elif action == "cancel":
                # The losers are cancelled after the verdict.
                is_over = self._verdict is not None
                self._log[value].end(clock.now_ns(), "cancelled" if is_over else "timeout", None)
                if not is_over:
                    self._last_error = ServerTimeoutError("no response within the timeout of the attempt")
                for task in [task for task, number in self._tasks.items() if number == value]:
                    self._cancel(task)

    def _left(self) -> float | None:
        return None if self._wake_ns is None else max(0.0, (self._wake_ns - clock.now_ns()) / 1e9)

    def _cancel(self, task: asyncio.Task[AttemptOutcome]) -> None:
        self._tasks.pop(task, None)
        task.cancel()
        _cancelled.add(task)
        task.add_done_callback(_discard)

    def _close_last(self) -> None:
        if self._last_response is not None:
            self._last_response.close()
            self._last_response = None


@dataclass(slots=True)
class _Entry:
    """Attempt in the log."""

    reason: str
    started_ns: int
    outcome: str | None = None
    status: int | None = None
    detail: str | None = None
    ended_ns: int = 0

    def end(self, now: int, outcome: str, status: int | None, detail: str | None = None) -> None:
        if self.outcome is None:
            self.outcome, self.status, self.detail, self.ended_ns = outcome, status, detail, now

    def attempt(self, number: int, upstream: str, began: int) -> Attempt:
        started_ms, duration_ms = (self.started_ns - began) / 1e6, (self.ended_ns - self.started_ns) / 1e6
        outcome = self.outcome or "cancelled"
        return Attempt(number, self.reason, upstream, outcome, self.status, self.detail, started_ms, duration_ms)


class AttemptLog:
    """Attempts of a call: `response.weir`. Most are never looked at, so its parts are computed on first use."""

    __slots__ = ("_attempts", "_began", "_entries", "_upstream", "not_sent")

    def __init__(self, entries: list[_Entry], upstream: str, began: int, not_sent: str | None) -> None:
        """Wrap entries that do not change any more."""
        self._entries = entries
        self._upstream = upstream
        self._began = began
        self._attempts: tuple[Attempt, ...] | None = None
        self.not_sent = not_sent

    def __len__(self) -> int:
        """Return the number of attempts."""
        return len(self._entries)

    @property
    def attempts(self) -> tuple[Attempt, ...]:
        """Attempts, in the order of their start."""
        if self._attempts is None:
            numbered = enumerate(self._entries, 1)
            self._attempts = tuple(entry.attempt(number, self._upstream, self._began) for number, entry in numbered)
        return self._attempts

    @property
    def won(self) -> Attempt | None:
        """The attempt whose response it is; None if none was successful."""
        return next((attempt for attempt in self.attempts if attempt.won), None)

    def __str__(self) -> str:
        """Return the attempts in a line."""
        attempts = ", ".join(f"{attempt.started_ms:.0f} ms {attempt}" for attempt in self.attempts)
        return f"{attempts}; {self.not_sent}" if self.not_sent else attempts

    def __repr__(self) -> str:
        """Return the attempts."""
        return f"<weir.aiohttp.AttemptLog {self}>"


def _discard(task: asyncio.Task[AttemptOutcome]) -> None:
    """End of a cancelled attempt; one that had ended before has a response."""
    _cancelled.discard(task)
    if not task.cancelled() and task.exception() is None:
        task.result().response.close()


def _can_resend(request: ClientRequest, noted: set[str]) -> bool:
    body: Any = request.body
    if not body or isinstance(body, payload.BytesPayload):
        return True
    name = type(body).__name__
    if name not in noted:
        noted.add(name)
        text = "a body of %s is sent once: such requests are not hedged, and retried only if they were not sent"
        logging.getLogger("weir.aiohttp").warning(text, name)
    return False


def _copied(request: ClientRequest) -> ClientRequest:
    """Copy of a request, for an attempt beside others: without the task that writes its body, and without the timer.

    aiohttp's timer is a stack of tasks, which attempts that end in another order would confuse; it ends the caller's.
    """
    copied = copy.copy(request)
    copied.headers = request.headers.copy()
    state = copied.__dict__
    state.pop("_ClientRequest__writer", None)
    state.pop("response", None)
    state["_timer"] = _NO_TIMER
    if state.get("_continue") is not None:
        state["_continue"] = request.loop.create_future()
    return copied


class _NoTimer:
    """Timer of aiohttp without a time."""

    def __enter__(self) -> _NoTimer:
        return self

    def __exit__(self, *error: object) -> None:
        return None

    def assert_timeout(self) -> None:
        """Do nothing."""


_NO_TIMER = _NoTimer()
