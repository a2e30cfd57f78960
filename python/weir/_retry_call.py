"""One call that is retried: what failed becomes an event of the decision, and its reason a log line and a note."""

from __future__ import annotations

from collections.abc import Callable
from types import CoroutineType
from typing import TYPE_CHECKING, Any

from weir import _retry_clock as clock
from weir._errors import RetriesExhausted, UsageError
from weir._retry_record import RetryEvent
from weir._time import Time

if TYPE_CHECKING:
    from weir._retry_rules import Rules

__all__: list[str] = []

_LIMITS = {
    "attempts": "its attempts are used up",
    "deadline": "its deadline leaves no time for another",
    "budget": "the retry budget is used up",
    "retry_after": "its Retry-After is over a minute, and it has no deadline",
}


class RetriedCall:
    """State of one call; never shared by two."""

    __slots__ = ("_began", "_handle", "_is_testing", "_name", "_rules", "number")

    def __init__(self, rules: Rules, name: str, testing: tuple[int | None] | None) -> None:
        """Start the call and its first attempt."""
        self._rules = rules
        self._name = name
        self._began = clock.now_ns()
        self._is_testing = testing is not None
        self._handle = rules.handle.start(self._began, testing[0] if testing else None, testing is None)
        self.number = 1

    @property
    def elapsed(self) -> float:
        """Time since the start in seconds."""
        return (clock.now_ns() - self._began) / 1e9

    @property
    def remaining(self) -> float | None:
        """Time until the deadline in seconds, from 0."""
        deadline = self._handle.deadline
        return None if deadline is None else max(0.0, (deadline - clock.now_ns()) / 1e9)

    def raised(self, error: Exception) -> int | None:
        """Handle an exception: the time of the retry in ns, or None if the exception is to be raised."""
        at_least = self._rules.least_waits(error, self.number)
        if at_least is None:
            self.interrupted()
            return None
        return self._failed(at_least, error, None)

    def returned(self, result: Any) -> int | None:
        """Handle a result: the time of the retry in ns, or None if the result is that of the call."""
        if type(result) is CoroutineType:
            result.close()
            self.interrupted()
            raise TypeError(
                f"weir.retry: {self._name} returned a coroutine, which was not awaited; write it as 'async def', or "
                "pass it through inspect.markcoroutinefunction"
            )
        until = self._rules.until
        if until is None or until(result):
            self._handle.ended(True)
            return None
        at_ns = self._failed(self._rules.waits_of_number(self.number), None, result)
        if at_ns is None:
            raise self._exhausted(result)
        return at_ns

    def retry(self, error: Exception | None, result: Any = None) -> bool:
        """Start the retry whose time has come; false if the exception is to be raised after all."""
        limit = self._handle.retry(clock.now_ns())
        if limit is None:
            self.number += 1
            return True
        self._gave_up(limit, error)
        if error is None:
            raise self._exhausted(result)
        return False

    def interrupted(self) -> None:
        """Count an end without a result, unless the end was counted before."""
        self._handle.ended(False)

    def _failed(self, at_least: list[Time], error: Exception | None, result: Any) -> int | None:
        retry_after, date = (
            _retry_after_of(result if error is None else error) if self._rules.retry_after else (None, None)
        )
        now = clock.now_ns()
        at_ns, limit = self._handle.failed(now, at_least, retry_after, date, clock.wall_ns())
        if limit is not None:
            self._gave_up(limit, error)
            return None
        assert at_ns is not None
        wait, elapsed = (at_ns - now) / 1e9, (now - self._began) / 1e9
        event = RetryEvent(self._name, self.number, error, result, wait, elapsed, self.remaining)
        self._log(False, f"{self._name}: attempt {self.number} {_cause(error)}; retry in {wait:.3f} s", event)
        if self._rules.on_retry is not None:
            self._rules.on_retry(event)
        return at_ns

    def _gave_up(self, limit: str, error: Exception | None) -> None:
        self._handle.ended(False)
        count = "1 attempt" if self.number == 1 else f"{self.number} attempts"
        text = f"{self._name} ended after {count} in {self.elapsed:.3f} s: {_LIMITS[limit]}"
        if limit != "attempts" or self.number > 1:
            self._log(True, f"{text}; the last one {_cause(error)}", None)
            _add_note(error, f"weir.retry: {self._name} ", text.removeprefix(f"{self._name} "))

    def _exhausted(self, result: Any) -> RetriesExhausted:
        count = "1 attempt" if self.number == 1 else f"{self.number} attempts"
        return RetriesExhausted(f"{self._name}: no result that 'until' accepts after {count}", result)

    def _log(self, is_end: bool, text: str, event: RetryEvent | None) -> None:
        import logging  # noqa: PLC0415  a call without a failure needs none

        logger = logging.getLogger("weir.retry")
        if not logger.handlers:
            # Without a configuration, logging would print to stderr what is raised anyway.
            logger.addHandler(logging.NullHandler())
        logger.log(logging.WARNING if is_end else logging.INFO, "%s", text, extra={"retry": event})


class RetryAttempt:
    """Attempt of a block: `with attempt: ...` within a loop over `weir.retry`.

    Attributes:
        number: Number, from 1.
        result: Result of the block, for `until`; None unless the block sets it.
    """

    __module__ = "weir"
    __slots__ = ("_at_ns", "_call", "_error", "_state", "number", "result")

    number: int
    result: Any

    def __init__(self, call: RetriedCall) -> None:
        """Make an attempt; for `weir.retry` only."""
        self._call = call
        self._error: Exception | None = None
        self._at_ns = 0
        self._state = "new"
        self.number = call.number
        self.result = None

    @property
    def elapsed(self) -> float:
        """Time since the start of the first attempt in seconds."""
        return self._call.elapsed

    @property
    def remaining(self) -> float | None:
        """Time until the deadline in seconds, for the timeouts of the attempt; None without a deadline."""
        return self._call.remaining

    def __repr__(self) -> str:
        """Return the number."""
        return f"<weir.RetryAttempt {self.number}>"

    def __enter__(self) -> RetryAttempt:
        """Begin the attempt."""
        if self._state != "new":
            raise UsageError("weir.retry: an attempt is used once; go on with the loop for the next one")
        self._state = "running"
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: object) -> bool:
        """End the attempt; an exception that is retried ends here."""
        self._state = "ended"
        if error is None:
            at_ns = self._call.returned(self.result)
        elif isinstance(error, Exception):
            at_ns = self._call.raised(error)
        else:
            self._call.interrupted()
            return False
        if at_ns is None:
            return False
        self._state, self._at_ns = "failed", at_ns
        if isinstance(error, Exception):
            self._error = error
        return True

    def _retry_at(self) -> int | None:
        """Time of the retry in ns; None if the loop ends."""
        if self._state in {"new", "running"}:
            self._call.interrupted()
            raise UsageError("weir.retry: the loop needs 'with attempt:' around what is retried")
        return self._at_ns if self._state == "failed" else None

    def _next(self) -> RetryAttempt:
        error, self._error = self._error, None
        try:
            if not self._call.retry(error, self.result) and error is not None:
                raise error
        finally:
            # No cycle of frame, exception and traceback.
            del error
        return RetryAttempt(self._call)


class RetryLoop:
    """Attempts of one block, in a thread or in a task."""

    __slots__ = ("_attempt", "_call")

    def __init__(self, call: RetriedCall) -> None:
        """Make the loop of a call that has started."""
        self._call = call
        self._attempt: RetryAttempt | None = None

    def __iter__(self) -> RetryLoop:
        """Return the loop itself."""
        return self

    def __aiter__(self) -> RetryLoop:
        """Return the loop itself."""
        return self

    def __next__(self) -> RetryAttempt:
        """Wait for the next attempt, in a thread."""
        at_ns = self._next_at()
        if at_ns is None:
            raise StopIteration
        try:
            if at_ns:
                clock.sleep_until(at_ns)
        except BaseException:
            self._call.interrupted()
            raise
        return self._next()

    async def __anext__(self) -> RetryAttempt:
        """Wait for the next attempt, in a task."""
        at_ns = self._next_at()
        if at_ns is None:
            raise StopAsyncIteration
        try:
            if at_ns:
                await clock.wait_until(at_ns)
        except BaseException:
            self._call.interrupted()
            raise
        return self._next()

    def _next_at(self) -> int | None:
        return 0 if self._attempt is None else self._attempt._retry_at()

    def _next(self) -> RetryAttempt:
        self._attempt = RetryAttempt(self._call) if self._attempt is None else self._attempt._next()
        return self._attempt


def _cause(error: Exception | None) -> str:
    # Without the message, which may have an address with secrets.
    return "was rejected by 'until'" if error is None else f"raised {type(error).__module__}.{type(error).__qualname__}"


def _add_note(error: Exception | None, begin: str, end: str) -> None:
    add: Callable[[str], None] | None = getattr(error, "add_note", None)
    if add is None:  # Python 3.10
        return
    notes = getattr(error, "__notes__", [])
    # The same exception may be raised by every call.
    if notes and str(notes[-1]).startswith(begin):
        notes.pop()
    add(begin + end)


def _retry_after_of(source: Any) -> tuple[str | None, str | None]:
    """Retry-After and Date of an exception's response, or of a result: httpx, requests, aiohttp, urllib, boto."""
    try:
        response = getattr(source, "response", None)
        if isinstance(response, dict):
            headers = response.get("ResponseMetadata", {}).get("HTTPHeaders")
        else:
            headers = getattr(response, "headers", None)
        if headers is None:
            headers = getattr(source, "headers", None)
        return _text(headers, "Retry-After"), _text(headers, "Date")
    except Exception:
        return None, None


def _text(headers: Any, name: str) -> str | None:
    if headers is None:
        return None
    value = headers.get(name)
    if value is None:
        value = headers.get(name.lower())
    return value.decode("latin-1") if isinstance(value, bytes) else None if value is None else str(value)
