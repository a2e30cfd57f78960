"""Options of transports, common to those of all libraries."""

from __future__ import annotations

import logging
import os
import sys
import warnings
from collections.abc import Iterable
from difflib import get_close_matches
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, Literal
from urllib.request import proxy_bypass

from weir import _weir
from weir._call_failure import failure
from weir._call_log import CallLog
from weir._call_spans import CallSpan
from weir._errors import DeadlineExceeded, UsageError
from weir._policy import Hedge
from weir._rate import Keys, Rate, rate_of
from weir._response import attempts_of
from weir._time import Time

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from weir._client_base import CallOptions
    from weir._errors import ClientError

__all__ = [
    "TransportCall",
    "TransportCore",
    "can_repeat",
    "stages_of",
    "unknown_option",
]

_LOG = logging.getLogger("weir.transport")

# Longest body of a request, in bytes, that is read before it is sent, so that it can be sent again.
_MAX_REPEATABLE = 1 << 20


class TransportCore:
    """Calls of one transport: its options, and the native handle."""

    def __init__(
        self,
        owner: str,
        *,
        limit: int | Literal["adaptive"] | None,
        rate: Rate | None,
        keys: Keys | None,
        verify: bool | str | PathLike[str],
        cert: Any,
        http2: bool,
        uds: str | PathLike[str] | None,
        idle_timeout: Time | None = None,
        max_idle: int | None = None,
        trust_env: bool = True,
        **policy: Unpack[CallOptions],
    ) -> None:
        if not isinstance(verify, bool | str | PathLike):
            kind = type(verify).__name__
            raise TypeError(f"verify: True, False or a PEM file of CA certificates, not {kind}")
        certificate, key = _certificate(cert)
        if not (limit is None or limit == "adaptive" or (isinstance(limit, int) and not isinstance(limit, bool))):
            raise UsageError(f"limit: {limit!r} is unknown; give a number of concurrent calls, 'adaptive', or None")
        if isinstance(policy["retries"], bool):
            raise TypeError("retries: a number, or a weir.Retry, not bool")
        self._owner = owner
        self._rate = rate_of(rate, keys)
        self._trust_env = trust_env
        self._warned: set[str] = set()
        # Whether by scheme there is nothing to warn of, or that was done.
        self._checked_proxies: set[bool] = set()
        self._policy = _weir.PolicyHandle({**policy, "hedge": stages_of(policy["hedge"])})
        self._handle = _weir.TransportHandle(
            self._policy,
            {
                "cacert": None if isinstance(verify, bool) else fspath(verify),
                "insecure": verify is False,
                "cert": certificate,
                "key": key,
                "http2": http2,
                "socket": None if uds is None else fspath(uds),
                "idle_timeout": idle_timeout,
                "max_idle": max_idle,
                "max_calls": limit if isinstance(limit, int) else None,
                "is_adaptive": limit == "adaptive",
            },
        )

    def call(  # noqa: PLR0917  the parts of a request
        self,
        origin: tuple[bool, str, int],
        method: str,
        url: object,
        target: str,
        headers: list[tuple[bytes, bytes]],
        body: bytes | None,
        timeouts: tuple[float | None, float | None, float | None, float | None],
        server_name: str | None,
        request: object,
    ) -> TransportCall:
        """Prepare a call; a body of None follows in pieces."""
        if body is None and self._policy.may_repeat(method):
            self.warn(
                "stream",
                "a request body that is a stream of unknown length, or longer than 1 MiB, cannot be sent again: such "
                "calls have one attempt; give the body as bytes to have them retried and hedged",
            )
        if self._trust_env and origin[0] not in self._checked_proxies:
            self._check_proxies(origin)
        span = None
        if "opentelemetry.trace" in sys.modules:
            headers = list(headers)
            span = CallSpan.begin(method, str(url), origin, headers)
        try:
            rate = None if self._rate is None else self._rate.of(request, origin, headers)
            streamed = self._handle.prepare(origin, method, target, headers, body, timeouts, server_name, rate)
        except BaseException as error:
            if span is not None:
                span.cancel(error)
            raise
        return TransportCall(streamed, span, method, url)

    def warn(self, kind: str, text: str) -> None:
        """Warn once of this kind."""
        if kind not in self._warned:
            self._warned.add(kind)
            warnings.warn(f"{self._owner}: {text}", UserWarning, stacklevel=_outside())

    def _check_proxies(self, origin: tuple[bool, str, int]) -> None:
        """Warn if the environment names a proxy for these calls."""
        scheme = "https" if origin[0] else "http"
        names = (f"{scheme}_proxy", f"{scheme.upper()}_PROXY", "all_proxy", "ALL_PROXY")
        found = next((name for name in names if os.environ.get(name)), None)
        if found is None:
            self._checked_proxies.add(origin[0])
            return
        if not proxy_bypass(f"{origin[1]}:{origin[2]}"):
            self._checked_proxies.add(origin[0])
            self.warn(
                "proxy",
                f"{found} is set, and has no effect: this transport connects directly; mount a transport of the "
                "library for URLs that need a proxy, or pass trust_env=False",
            )

    def close(self) -> None:
        """Release connections."""
        self._handle.close()
        _weir.release_connections()


def stages_of(hedge: Any) -> Hedge | tuple[Hedge, ...] | None:
    """Check hedge stages."""
    if hedge is None or isinstance(hedge, Hedge):
        return hedge
    stages = tuple(hedge) if isinstance(hedge, Iterable) and not isinstance(hedge, str) else (hedge,)
    if not all(isinstance(stage, Hedge) for stage in stages):
        raise TypeError(f"hedge: a weir.Hedge or several, not {hedge!r}; write hedge=weir.Hedge(after=0.2)")
    return stages


def unknown_option(owner: str, given: Iterable[str], known: Iterable[str]) -> TypeError:
    """Make the error of an option that does not exist, with what is likely meant."""
    name = min(given)
    meant = _OTHER_NAMES.get(name) or next(iter(get_close_matches(name, list(known), 1)), None)
    return TypeError(f"{owner}: unknown option {name!r}; " + (f"use {meant}" if meant else f"see help({owner})"))


_OTHER_NAMES = {
    "max_retries": "retries",
    "retry": "retries",
    "pool_maxsize": "limit",
    "pool_connections": "limit",
    "pool_block": "limit",
    "max_connections": "limit",
    "ssl_context": "verify, with a PEM file",
    "limiter": "rate",
    "rate_limit": "rate",
    "shared": "rate=weir.Limiter('20/1s', shared=...)",
}


class TransportCall:
    """A call in flight."""

    __slots__ = ("_handle", "_method", "_span", "_url", "streamed")

    def __init__(self, streamed: _weir.StreamedCallHandle, span: CallSpan | None, method: str, url: object) -> None:
        self.streamed = streamed
        self._span = span
        self._method = method
        self._url = url
        self._handle: _weir.ResponseHandle | None = None

    def responded(self, handle: _weir.ResponseHandle) -> CallLog:
        """Return the attempt log of a call with a response; one with more than one attempt is logged."""
        self._handle = handle
        log = CallLog(handle, self.streamed)
        if (handle.attempt_count > 1 or handle.not_sent is not None) and _LOG.isEnabledFor(logging.INFO):
            _LOG.info("%s: %s", self._shown(), log)
        if self._span is not None:
            self._span.end(handle.status, log)
        return log

    def failed(self, handle: _weir.ResponseHandle) -> ClientError:
        """Close a call without a response, and make its exception, which is the cause of the library's."""
        self.streamed.close()
        error = failure(handle, self._shown())
        if handle.attempt_count > 1 or handle.not_sent is not None:
            _LOG.info("%s", error)
        if self._span is not None:
            self._span.end(0, CallLog(handle, None))
        return error

    def late(self, text: str) -> ClientError:
        """Make the exception of a body whose call's deadline has passed."""
        attempts = () if self._handle is None else attempts_of(self._handle)
        error = DeadlineExceeded(f"{self._shown()}: {text}", attempts)
        _LOG.info("%s", error)
        return error

    def cancelled(self, error: BaseException) -> None:
        """Close a call that its caller broke off."""
        self.streamed.close()
        if self._span is not None:
            self._span.cancel(error)

    def _shown(self) -> str:
        return f"{self._method} {_weir.without_secrets(str(self._url))}"


def can_repeat(length: str | bytes | None) -> bool:
    """Whether a body of this length is read before it is sent."""
    return length is not None and length.isdigit() and int(length) <= _MAX_REPEATABLE


def _certificate(cert: Any) -> tuple[str | None, str | None]:
    if cert is None:
        return None, None
    if isinstance(cert, str | PathLike):
        return fspath(cert), fspath(cert)
    if isinstance(cert, tuple | list) and len(cert) == 2:
        return fspath(cert[0]), fspath(cert[1])
    raise TypeError("cert: a PEM file, or a pair of certificate and key; keys with a password are not supported")


def _outside() -> int:
    """Return the level of the first caller outside of this package and of the library below it."""
    level, frame = 2, sys._getframe(2)
    skipped = ("weir", "httpx", "httpx2", "requests", "urllib3")
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in skipped:
        level, frame = level + 1, frame.f_back
    return level
