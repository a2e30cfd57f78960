"""Rules of a `weir.retry`: which exceptions and results, after which waits."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from datetime import timedelta
from inspect import iscoroutinefunction
from typing import Any, TypeAlias

from weir import _decisions
from weir._errors import UsageError
from weir._policy import Budget
from weir._retry_record import RetryEvent
from weir._shared_budget import SharedBudget, budget_handle
from weir._time import Time

__all__: list[str] = []

Predicate: TypeAlias = Callable[[Any], "bool | float | timedelta"]
"""Function of an exception: whether it is retried, or the least wait before that."""

On: TypeAlias = type[Exception] | Predicate | Iterable[type[Exception] | Predicate]
"""Exceptions that are retried."""


class Rules:
    """Rules of all calls of a function, and their state that is shared."""

    __slots__ = ("_backoff", "_kinds", "_predicates", "handle", "on_retry", "retry_after", "until")

    def __init__(
        self,
        *,
        on: On | None,
        attempts: int | None,
        deadline: Time | None,
        backoff: Time | tuple[Time, Time] | Callable[[int], Time],
        budget: Budget | SharedBudget | None,
        retry_after: bool,
        until: Callable[[Any], Any] | None,
        on_retry: Callable[[RetryEvent], Any] | None,
    ) -> None:
        """Parse the arguments of `weir.retry`."""
        if on is None and until is None:
            raise UsageError("on: exceptions that are retried are missing; give e.g. on=ConnectionError")
        self._kinds, self._predicates = _parsed(on)
        self._backoff = backoff if callable(backoff) else None
        for name, function in (("backoff", self._backoff), ("until", until), ("on_retry", on_retry)):
            _check_function(name, function)
        self.until = until
        self.on_retry = on_retry
        self.retry_after = retry_after
        form = {
            "attempts": attempts,
            "deadline": deadline,
            "backoff": 0 if callable(backoff) else backoff,
            "budget": budget_handle(budget),
        }
        self.handle = _decisions.RetryRulesHandle(form, random.getrandbits(64))

    def least_waits(self, error: Exception, number: int) -> list[Time] | None:
        """Least waits before the retry of an exception; None if it is not retried."""
        if isinstance(error, self._kinds):
            return self.waits_of_number(number)
        for predicate in self._predicates:
            found: object = predicate(error)
            if found is True:
                return self.waits_of_number(number)
            if isinstance(found, float | int | timedelta) and found is not False:
                return [*self.waits_of_number(number), found]
            if found is not False:
                raise TypeError(f"on: a predicate returned {found!r}; return True, False, or seconds to wait at least")
        return None

    def waits_of_number(self, number: int) -> list[Time]:
        """Wait after an attempt of this number, if a function has it."""
        return [] if self._backoff is None else [self._backoff(number)]


def _parsed(on: On | None) -> tuple[tuple[type[Exception], ...], tuple[Predicate, ...]]:
    kinds: list[type[Exception]] = []
    predicates: list[Predicate] = []
    given: list[Any] = [] if on is None else list(on) if isinstance(on, Iterable) and not isinstance(on, str) else [on]
    for one in given:
        if isinstance(one, type) and issubclass(one, Exception):
            kinds.append(one)
        elif isinstance(one, type) and issubclass(one, BaseException):
            raise UsageError(f"on: {one.__name__} is never retried; give subclasses of Exception")
        elif callable(one) and not isinstance(one, type):
            _check_function("on", one)
            predicates.append(one)
        else:
            raise TypeError(
                f"on: an exception class, a function of an exception, or several, not {one!r}; for statuses e.g. "
                "on=lambda error: getattr(error, 'status_code', 0) >= 500"
            )
    return tuple(kinds), tuple(predicates)


def _check_function(name: str, function: Any) -> None:
    if function is None:
        return
    if not callable(function):
        raise TypeError(f"{name}: a function, not {type(function).__name__}")
    if iscoroutinefunction(function):
        raise TypeError(f"{name}: a plain function; one with 'async def' would not be awaited")
