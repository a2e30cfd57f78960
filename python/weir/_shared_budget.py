"""Retry budget that several callers share."""

from __future__ import annotations

from weir import _decisions
from weir import _retry_clock as clock
from weir._policy import Budget

__all__ = ["SharedBudget"]


class SharedBudget:
    """Retry budget of all that use this object: `weir.retry`, `weir.aiohttp.Middleware`.

    A `Budget` is a rule, and each user of it counts by itself; here all are counted together, so that one upstream with
    several callers gets no more than its extra attempts.

    >>> payments = weir.SharedBudget(weir.Budget(fraction=0.1, min_per_s=1))  # doctest: +SKIP
    """

    __module__ = "weir"
    __slots__ = ("_handle",)

    def __init__(self, rule: Budget = Budget()) -> None:  # noqa: B008  a frozen value
        """Make a budget before its first call.

        Args:
            rule: Extra attempts that are allowed.

        Raises:
            UsageError: A value of the rule is invalid.
        """
        self._handle = _decisions.BudgetHandle(rule)

    @property
    def remaining(self) -> int:
        """Extra attempts that could be made now."""
        return self._handle.remaining(clock.now_ns())

    def __repr__(self) -> str:
        """Return the rule, and what remains."""
        return f"<weir.SharedBudget {self._handle}, {self.remaining} remaining>"


def budget_handle(budget: Budget | SharedBudget | None) -> _decisions.BudgetHandle | None:
    """Budget of one user: its own by a rule, or the shared one."""
    if budget is None:
        return None
    return budget._handle if isinstance(budget, SharedBudget) else _decisions.BudgetHandle(budget)
