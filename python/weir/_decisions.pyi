"""Decisions of the native module, for attempts that Python makes; times are of `now_ns`."""

from collections.abc import Mapping, Sequence
from typing import Literal, final

from weir._policy import Budget
from weir._time import Time
from weir._weir import PolicyHandle, now_ns

__all__ = ["BudgetHandle", "CallDecisionHandle", "CallRulesHandle", "RetryCallHandle", "RetryRulesHandle", "now_ns"]

@final
class BudgetHandle:
    """Retry budget of all that use this object; times are of `now_ns`."""

    def __new__(cls, rule: Budget) -> BudgetHandle: ...
    def remaining(self, now: int) -> int:
        """Extra attempts that could be made now."""

@final
class RetryRulesHandle:
    """Rules of all calls of a function that is retried, and what was counted."""

    def __new__(cls, form: Mapping[str, object], seed: int) -> RetryRulesHandle: ...
    def start(self, now: int, attempts: int | None, waits: bool) -> RetryCallHandle:
        """Start a call and its first attempt; it has at most `attempts`, and no wait without `waits`."""
    def counts(self) -> list[int]:
        """Calls, attempts, retries, successes, failures, retries that the budget denied, and waits in ns."""

@final
class RetryCallHandle:
    """State of one call."""

    deadline: int | None

    def failed(
        self,
        now: int,
        at_least: Sequence[Time] = ...,
        retry_after: str | None = None,
        date: str | None = None,
        wall_ns: int = 0,
    ) -> tuple[int | None, Literal["attempts", "deadline", "budget", "retry_after"] | None]:
        """Time of the retry in ns, or the limit that denies it."""
    def retry(self, now: int) -> Literal["deadline", "budget"] | None:
        """Start the retry whose time has come; the limit that denies it, or None."""
    def ended(self, succeeded: bool) -> None:
        """Count the end of the call, once."""

@final
class CallRulesHandle:
    """Rules of all calls of a middleware, their budget, and recent times by host."""

    has_extra_attempts: bool
    has_stages: bool
    is_strict: bool
    needs_body: bool
    max_response: int | None
    deadline: int | None

    def __new__(cls, options: PolicyHandle, budget: BudgetHandle | None, seed: int) -> CallRulesHandle: ...
    def head_failure(self, status: int, headers: object) -> tuple[int | None, str | None]:
        """Failure of a response by its head: a status or a kind, or neither."""
    def body_failure(self, body: bytes) -> str | None:
        """Failure of a response by its decoded body: a kind, or None."""
    def start(
        self, now: int, deadline: int | None, method: str, can_resend: bool, host: str
    ) -> tuple[CallDecisionHandle, list[tuple[str, int, str]]]:
        """Start a call, with the first actions: launch, cancel, wake, unsent or finish; number or time; reason."""

@final
class CallDecisionHandle:
    """Decision of one call."""

    def succeeded(self, now: int, attempt: int) -> list[tuple[str, int, str]]: ...
    def failed(
        self,
        now: int,
        attempt: int,
        status: int | None = None,
        kind: str | None = None,
        retry_after: str | None = None,
        date: str | None = None,
        wall_ns: int = 0,
    ) -> list[tuple[str, int, str]]: ...
    def turn(self, now: int, attempt: int) -> list[tuple[str, int, str]]: ...
    def not_repeated(self, method: str) -> str | None: ...
    def tick(self, now: int) -> list[tuple[str, int, str]]: ...
