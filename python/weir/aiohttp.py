"""Middleware for sessions of aiohttp: deadlines, hedging and retries within a budget.

>>> middleware = weir.aiohttp.Middleware(deadline=1.0, hedge=weir.Hedge(after=0.2), retries=2)  # doctest: +SKIP
>>> session = aiohttp.ClientSession(middlewares=(middleware,))  # doctest: +SKIP

It needs aiohttp 3.12 or newer, which weir does not install.
"""

from __future__ import annotations

import copy
import logging
import random
from collections.abc import Iterable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Literal

try:
    from aiohttp import (
        ClientHandlerType,
        ClientOSError,
        ClientRequest,
        ClientResponse,
        ClientResponseError,
        ServerDisconnectedError,
        ServerTimeoutError,
    )
except ImportError as _error:
    raise ImportError(f"weir.aiohttp needs aiohttp 3.12 or newer ({_error}); install it: pip install aiohttp") from None

from weir import _decisions, _weir
from weir import _retry_clock as clock
from weir._aiohttp_call import AttemptedCall, AttemptLog
from weir._errors import AllAttemptsFailed, DeadlineExceeded
from weir._policy import Budget, Hedge, Retry, Success
from weir._response import Attempt
from weir._shared_budget import SharedBudget, budget_handle
from weir._time import Time

__all__ = ["Middleware", "attempts"]


class Middleware:
    """Middleware of a session, or of one request, that sends requests again, and beside slow ones.

    All else stays aiohttp's: connections, timeouts, redirects, cookies, tracing, and its exceptions. A deadline that
    passes raises `aiohttp.ServerTimeoutError`, from `weir.DeadlineExceeded`. It is the first of several middlewares, so
    that the others, such as authentication, act on each attempt.
    """

    def __init__(
        self,
        *,
        timeout: Time | None = None,
        deadline: Time | None = None,
        hedge: Hedge | Iterable[Hedge] | None = None,
        retries: Retry | int | None = None,
        budget: Budget | SharedBudget | None = Budget(),  # noqa: B008  a frozen value
        success: Success | None = None,
        retry_methods: Literal["safe", "idempotent", "all"] = "safe",
        max_response: int | None = 64 * 2**20,
    ) -> None:
        """Make a middleware; it may serve any number of sessions, whose budget is then one.

        Args:
            timeout: Timeout of each attempt until the head of its response, beside aiohttp's own. Default: none.
            deadline: Deadline of the whole call: all attempts, redirects, and reading the body. Default: none.
            hedge: Hedge stages: further attempts beside a slow one.
            retries: Maximum retries, or a `Retry`: new attempts in place of failed ones.
            budget: Budget of all extra attempts; a `SharedBudget` to share it with others, None for no limit.
            success: Rules of a successful response. Default: any status but 408, 429 and 5xx; without a success the
                last response is returned. With rules of your own, a call without a success raises
                `aiohttp.ClientResponseError`. Rules of the body read it whole.
            retry_methods: Methods that may be sent more than once: ``"safe"`` (GET, HEAD, OPTIONS, TRACE),
                ``"idempotent"`` (also PUT and DELETE) or ``"all"``. Others are sent again only if they were not sent.
            max_response: Maximum body that attempts read themselves, in bytes: for rules of the body, and of failed
                responses that are followed by another attempt. Other bodies are not bounded.

        Raises:
            UsageError: A value is invalid.
            TypeError: An argument has another type.
        """
        options = {
            "timeout": timeout,
            "deadline": deadline,
            "hedge": hedge,
            "retries": retries,
            "budget": None,
            "success": success,
            "retry_methods": retry_methods,
            "max_response": max_response,
        }
        self._budget = budget_handle(budget)
        self._rules = _decisions.CallRulesHandle(_weir.PolicyHandle(options), self._budget, random.getrandbits(64))
        self._noted: set[str] = set()

    async def __call__(self, request: ClientRequest, handler: ClientHandlerType) -> ClientResponse:
        """Make the attempts of a request; aiohttp calls it."""
        if "Upgrade" in request.headers:
            # A WebSocket has no response to compare.
            return await handler(request)
        timer = getattr(request, "_timer", None)
        last = _last_call.get()
        is_same = last is not None and last.middleware is self and last.timer is timer and timer is not None
        if is_same and last is not None and last.error is not None:
            # aiohttp sends once more what a broken connection ended; its attempts are over.
            error, last.error = last.error, None
            raise error
        deadline_ns = last.deadline_ns if is_same and last is not None else self._deadline_ns()
        last = _Call(self, timer, deadline_ns)
        _last_call.set(last)
        call = AttemptedCall(self._rules, request, handler, deadline_ns, self._noted)
        try:
            response = await call.run()
        except (ClientOSError, ServerDisconnectedError) as error:
            self._describe(error, request, call)
            if call.has_extra_attempts:
                # A copy, without the traceback and its frames.
                last.error = copy.copy(error)
            raise
        except Exception as error:
            self._describe(error, request, call)
            raise
        if response is None:
            raise self._too_late(request, call)
        if call.is_rejected:
            raise self._no_success(request, response, call)
        response.__dict__[_LOG] = log = call.log(self._budget)
        self._tell(request, call, log)
        return response

    def _deadline_ns(self) -> int | None:
        length = self._rules.deadline
        return None if length is None else clock.now_ns() + length

    def _too_late(self, request: ClientRequest, call: AttemptedCall) -> Exception:
        log = call.log(self._budget)
        self._tell(request, call, log)
        error = ServerTimeoutError(f"the deadline of {(self._rules.deadline or 0) / 1e9:g} s passed")
        error.__cause__ = DeadlineExceeded(f"no success before the deadline: {log}", log.attempts)
        error.__dict__[_LOG] = log
        return error

    def _no_success(self, request: ClientRequest, response: ClientResponse, call: AttemptedCall) -> Exception:
        log = call.log(self._budget)
        self._tell(request, call, log)
        error = ClientResponseError(
            response.request_info,
            response.history,
            status=response.status,
            message="no attempt has met the rules of success",
            headers=response.headers,
        )
        response.close()
        error.__cause__ = AllAttemptsFailed(f"no attempt succeeded: {log}", log.attempts)
        error.__dict__[_LOG] = log
        return error

    def _describe(self, error: Exception, request: ClientRequest, call: AttemptedCall) -> None:
        error.__dict__[_LOG] = log = call.log(self._budget)
        self._tell(request, call, log)
        if call.has_extra_attempts and hasattr(error, "add_note"):
            error.add_note(f"weir.aiohttp: {log}")

    @staticmethod
    def _tell(request: ClientRequest, call: AttemptedCall, log: AttemptLog) -> None:
        """Log a call with more than one attempt, or one that was denied."""
        if (call.has_extra_attempts or log.not_sent) and _logger.isEnabledFor(logging.INFO):
            _logger.info("%s %s: %s", request.method, _weir.without_secrets(str(request.url)), log)


def attempts(of: ClientResponse | BaseException) -> tuple[Attempt, ...]:
    """Return the attempts of a call, in the order of their start, by its response or exception.

    The same are `response.weir.attempts`, which type checkers do not find.

    Returns:
        The attempts; none, if the call had no `Middleware`.
    """
    log: AttemptLog | None = getattr(of, _LOG, None)
    return () if log is None else log.attempts


_LOG = "weir"

_logger = logging.getLogger("weir.transport")


@dataclass(slots=True)
class _Call:
    """Call of a session that may invoke its middleware again: for a redirect, or since a connection was broken."""

    middleware: Middleware
    timer: Any
    deadline_ns: int | None
    error: Exception | None = None


_last_call: ContextVar[_Call | None] = ContextVar("weir.aiohttp", default=None)
