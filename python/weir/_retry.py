"""Retries around any function or block: `weir.retry`."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from inspect import isasyncgenfunction, iscoroutinefunction, isgeneratorfunction
from typing import Any, ClassVar, TypeVar

from weir import _retry_clock as clock
from weir._policy import Budget
from weir._retry_call import RetriedCall, RetryAttempt, RetryLoop
from weir._retry_record import RetryEvent, RetryStatistics
from weir._retry_rules import On, Rules
from weir._shared_budget import SharedBudget
from weir._time import Time

__all__ = ["RetryAttempt", "retry"]

_Function = TypeVar("_Function", bound="Callable[..., Any] | classmethod[Any, ..., Any] | staticmethod[..., Any]")


class retry:  # noqa: N801  used as a decorator, as `property` is
    """Retries around a function or a block, blocking or awaited, within a deadline and a retry budget.

    >>> @weir.retry(on=httpx.HTTPError, attempts=3, deadline=5.0)  # doctest: +SKIP
    ... def fetch(url): ...

    >>> for attempt in weir.retry(on=httpx.HTTPError):  # doctest: +SKIP
    ...     with attempt:
    ...         response = client.get(url, timeout=attempt.remaining)

    In a coroutine the loop is ``async for``. The last exception is raised as it is. KeyboardInterrupt, cancellation and
    all else that is not an `Exception` is never retried.

    Attributes:
        statistics: Counts of all calls.
    """

    __module__ = "weir"

    statistics: RetryStatistics

    # Maximum attempts within `testing`; None outside of it.
    _testing: ClassVar[tuple[int | None] | None] = None

    def __init__(
        self,
        *function: Any,
        on: On | None = None,
        attempts: int | None = 3,
        deadline: Time | None = None,
        backoff: Time | tuple[Time, Time] | Callable[[int], Time] = (0.025, 1.0),
        budget: Budget | SharedBudget | None = Budget(),  # noqa: B008  a frozen value
        retry_after: bool = True,
        until: Callable[[Any], Any] | None = None,
        on_retry: Callable[[RetryEvent], Any] | None = None,
        name: str | None = None,
    ) -> None:
        """Make rules, for one function or for several that share the budget and the statistics.

        Args:
            function: None; ``@weir.retry`` needs arguments.
            on: Exceptions that are retried: a class, a function of an exception, or several of both. A function returns
                True, False, or seconds (a `timedelta`) to wait at least. Required, unless there is `until`.
            attempts: Maximum attempts of a call, with the first; None is no limit and needs a deadline.
            deadline: Time after which no attempt starts. It does not interrupt one: see `RetryAttempt.remaining`.
            backoff: Minimum and maximum wait; each is random, up to three times the one before. One time is constant.
                Or a function of the number of the failed attempt, from 1.
            budget: Bound on the retries of all calls; a `SharedBudget` to share it with others, None for no limit. It
                never stops a first attempt.
            retry_after: Wait at least for the Retry-After of the exception's response, or of the result.
            until: Function that accepts a result; others are retried. Without one that is accepted the call raises
                `RetriesExhausted`.
            on_retry: Called with a `RetryEvent` before each wait.
            name: Name in events, logs and notes. Default: that of the function.

        Raises:
            UsageError: A value is invalid.
            TypeError: An argument has another type.
        """
        if function:
            raise TypeError("weir.retry has arguments with names: @weir.retry(on=ConnectionError, attempts=3)")
        self._name = name
        self._rules = Rules(
            on=on,
            attempts=attempts,
            deadline=deadline,
            backoff=backoff,
            budget=budget,
            retry_after=retry_after,
            until=until,
            on_retry=on_retry,
        )
        self.statistics = RetryStatistics(self._rules.handle)

    def __repr__(self) -> str:
        """Return the name, if it has one, and the counts."""
        return f"<weir.retry {self._name or ''}{' ' if self._name else ''}{self.statistics!r}>"

    def __call__(self, function: _Function) -> _Function:
        """Return the function with retries; it has `retry`, `statistics` and `__wrapped__`.

        Raises:
            TypeError: It is not a function, or a generator.
        """
        retried: Any
        if isinstance(function, classmethod | staticmethod):
            retried = type(function)(self(function.__func__))
            return retried  # type: ignore[no-any-return]
        if not callable(function):
            raise TypeError(f"weir.retry: a function, not {type(function).__name__}")
        name = self._name or _name_of(function)
        kinds = (function, getattr(function, "__call__", None))  # noqa: B004  the method, of which the kind is asked
        if any(isgeneratorfunction(one) or isasyncgenfunction(one) for one in kinds):
            raise TypeError(
                f"weir.retry: {name} is a generator, whose values cannot be taken back; retry within it: "
                "for attempt in weir.retry(...)"
            )
        is_async = any(iscoroutinefunction(one) for one in kinds)
        retried = self._awaited(function, name) if is_async else self._blocking(function, name)
        retried.retry = self
        retried.statistics = self.statistics
        return retried  # type: ignore[no-any-return]

    def __iter__(self) -> Iterator[RetryAttempt]:
        """Attempts of a block: ``for attempt in weir.retry(...): with attempt: ...``."""
        return RetryLoop(RetriedCall(self._rules, self._name or _name_of_frame(), retry._testing))

    def __aiter__(self) -> AsyncIterator[RetryAttempt]:
        """Attempts of a block in a coroutine: ``async for attempt in weir.retry(...): with attempt: ...``."""
        return RetryLoop(RetriedCall(self._rules, self._name or _name_of_frame(), retry._testing))

    @classmethod
    @contextmanager
    def testing(cls, attempts: int | None = 1) -> Iterator[None]:
        """Within the block, in all threads: no waits, and at most these attempts; for tests.

        Args:
            attempts: Maximum attempts of a call; None leaves them as they are.
        """
        before = retry._testing
        retry._testing = (attempts,)
        try:
            yield
        finally:
            retry._testing = before

    def _blocking(self, function: Callable[..., Any], name: str) -> Callable[..., Any]:
        rules = self._rules

        @wraps(function)
        def retried(*args: Any, **named: Any) -> Any:
            call = RetriedCall(rules, name, retry._testing)
            try:
                while True:
                    try:
                        result = function(*args, **named)
                    except Exception as error:
                        if (at_ns := call.raised(error)) is None:
                            raise
                        clock.sleep_until(at_ns)
                        if not call.retry(error):
                            raise
                    else:
                        if (at_ns := call.returned(result)) is None:
                            return result
                        clock.sleep_until(at_ns)
                        call.retry(None, result)
            finally:
                call.interrupted()

        return retried

    def _awaited(self, function: Callable[..., Any], name: str) -> Callable[..., Any]:
        rules = self._rules

        @wraps(function)
        async def retried(*args: Any, **named: Any) -> Any:
            call = RetriedCall(rules, name, retry._testing)
            try:
                while True:
                    try:
                        result = await function(*args, **named)
                    except Exception as error:
                        if (at_ns := call.raised(error)) is None:
                            raise
                        await clock.wait_until(at_ns)
                        if not call.retry(error):
                            raise
                    else:
                        if (at_ns := call.returned(result)) is None:
                            return result
                        await clock.wait_until(at_ns)
                        call.retry(None, result)
            finally:
                call.interrupted()

        return retried


def _name_of(function: object) -> str:
    while not hasattr(function, "__qualname__") and hasattr(function, "func"):
        function = function.func
    of = function if hasattr(function, "__qualname__") else type(function)
    return f"{getattr(of, '__module__', None) or '?'}.{of.__qualname__}"


def _name_of_frame() -> str:
    # The caller of __iter__, whose frame has no place in a traceback.
    frame = sys._getframe(2)
    return f"{frame.f_globals.get('__name__', '?')}.{frame.f_code.co_name}"
