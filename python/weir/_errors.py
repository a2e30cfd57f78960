"""Exceptions of weir.

::

    Exception
    └── WeirError                  base class
        ├── UsageError             a value is invalid; also a ValueError
        ├── SetupError             the run could not start: no service at this address, no TLS, too few open files
        ├── NoResponse             a request of a task of a `User` got no response; the task may catch it
        ├── RetriesExhausted       `until` of a `weir.retry` accepted no result
        ├── LimiterError           the shared state of a Limiter is unreachable
        │   └── LimiterTimeout     no slot within the timeout; also a TimeoutError
        ├── SendError              of Sender or AsyncSender
        │   ├── JobFailed          the job was dead-lettered: `JobResult.raise_for_state`
        │   │   └── JobExpired     its TTL passed before delivery; also a TimeoutError
        │   ├── NotAccepted        the store does not accept the job: too large, or the disk is full
        │   └── SenderEnded        the sender ended before the job did
        └── ClientError            a call of Client or AsyncClient failed
            ├── DeadlineExceeded   the deadline passed; also a TimeoutError
            ├── AllAttemptsFailed  no attempt succeeded
            │   ├── ConnectFailed  none reached the upstream: name, connection or TLS; also a ConnectionError
            │   └── TimedOut       all took longer than `timeout`; also a TimeoutError
            ├── DecodingError      the body does not match its Content-Encoding
            ├── ResponseTooLarge   the body is longer than `max_response`, as received or decoded
            └── HTTPStatusError    the status is an error: `Response.raise_for_status`
    KeyboardInterrupt
    └── Interrupted                Ctrl-C during a run; has the result until then

A failed *request* of a load is never an exception: it is counted, by kind, in `Run.failures` and `Run.status`. A
failed *call* of a client is one. A failed *job* of a sender is a `JobResult` with the reason; its `raise_for_state`
raises. An argument of the wrong type is a plain `TypeError`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    # For annotations, and not loaded. A circle of files by its nature: an exception has the result that it is about,
    # and a result raises its exception (`Response.raise_for_status`, `JobResult.raise_for_state`).
    from weir._job import JobResult
    from weir._response import Attempt, Response
    from weir._run import Run

__all__ = [
    "AllAttemptsFailed",
    "ClientError",
    "ConnectFailed",
    "DeadlineExceeded",
    "DecodingError",
    "HTTPStatusError",
    "Interrupted",
    "JobExpired",
    "JobFailed",
    "LimiterError",
    "LimiterTimeout",
    "NoResponse",
    "NotAccepted",
    "ResponseTooLarge",
    "RetriesExhausted",
    "SendError",
    "SenderEnded",
    "SetupError",
    "TimedOut",
    "UsageError",
    "WeirError",
]


class WeirError(Exception):
    """Base class of weir's errors."""

    __module__ = "weir"


class UsageError(WeirError, ValueError):
    """Invalid value; the message names the argument, its value and a remedy."""

    __module__ = "weir"


class SetupError(WeirError):
    """A run that could not start: no request was sent. The message has the reason, and often a remedy."""

    __module__ = "weir"


class NoResponse(WeirError):  # noqa: N818  it is the end of a request, and often no error of the script
    """A request of a task of a `User` got no response: no connection, a timeout, not HTTP.

    The request is counted as a failure. A task that does not catch the exception ends, and its user goes on.
    """

    __module__ = "weir"


class RetriesExhausted(WeirError):  # noqa: N818  named for the event
    """Call of a `weir.retry` without a result that `until` accepts.

    Attributes:
        result: Last result. It is lost when the error is pickled.
    """

    __module__ = "weir"

    result: Any

    def __init__(self, message: str, result: Any = None) -> None:
        """Make an error with the last result."""
        super().__init__(message)
        self.result = result

    def __reduce__(self) -> tuple[type[RetriesExhausted], tuple[str]]:
        """Pickle without the result, which may be anything."""
        return type(self), (str(self),)


class ClientError(WeirError):
    """Failure of a call.

    Attributes:
        attempts: Attempts, in the order of their start.
        response: Last response, or None. It is lost when the error is pickled.
    """

    __module__ = "weir"

    attempts: Sequence[Attempt]
    response: Response | None

    def __init__(self, message: str, attempts: Sequence[Attempt] = (), response: Response | None = None) -> None:
        """Make an error with the attempts of its call."""
        super().__init__(message)
        self.attempts = tuple(attempts)
        self.response = response

    def __reduce__(self) -> tuple[type[ClientError], tuple[str, Sequence[Attempt]]]:
        """Pickle without the response, which Rust owns."""
        return type(self), (str(self), self.attempts)


class DeadlineExceeded(ClientError, TimeoutError):  # noqa: N818  named for the event
    """Deadline of a call that passed before a success; attempts in flight were cancelled."""

    __module__ = "weir"


class AllAttemptsFailed(ClientError):  # noqa: N818  named for the event
    """Call without a successful attempt; `attempts` has the kind of each failure."""

    __module__ = "weir"


class ConnectFailed(AllAttemptsFailed, ConnectionError):  # noqa: N818  named for the event
    """Call without an attempt that reached the upstream: failures of DNS, connection or TLS."""

    __module__ = "weir"


class TimedOut(AllAttemptsFailed, TimeoutError):  # noqa: N818  named for the event
    """Call whose attempts all took longer than `timeout`."""

    __module__ = "weir"


class DecodingError(ClientError):
    """Body that does not match its Content-Encoding."""

    __module__ = "weir"


class ResponseTooLarge(ClientError):  # noqa: N818  named for the event
    """Body of a response that is longer than `max_response`.

    A call raises it for the bytes that are received, and closes the connection; `Response.content`, `text` and `json`
    raise it for those that are decoded.
    """

    __module__ = "weir"


class HTTPStatusError(ClientError):
    """Status other than 2xx; its `response` is never None."""

    __module__ = "weir"

    response: Response


class LimiterError(WeirError):
    """Slot that a limiter could not grant: its shared file or server is unreachable, full or unreadable."""

    __module__ = "weir"


class LimiterTimeout(LimiterError, TimeoutError):  # noqa: N818  named for the event
    """Slot that was not free within the timeout; nothing was used."""

    __module__ = "weir"


class SendError(WeirError):
    """Job that was not delivered, or whose outcome is unknown."""

    __module__ = "weir"


class JobFailed(SendError):  # noqa: N818  named for the event
    """Dead-lettered job: its retries are used up, or the failure is permanent.

    Attributes:
        result: Result of the job. It is lost when the error is pickled.
    """

    __module__ = "weir"

    result: JobResult

    def __init__(self, message: str, result: JobResult | None = None) -> None:
        """Make an error with the result of its job."""
        super().__init__(message)
        if result is not None:
            self.result = result


class JobExpired(JobFailed, TimeoutError):  # noqa: N818  named for the event
    """Job whose TTL passed before delivery."""

    __module__ = "weir"


class NotAccepted(SendError):  # noqa: N818  named for the event
    """Job that the store does not accept: it is too large, or the disk is full. Jobs accepted before are safe."""

    __module__ = "weir"


class SenderEnded(SendError):  # noqa: N818  named for the event
    """Sender that ended before the job; a job in a file or in Redis stays there for the next sender."""

    __module__ = "weir"


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during a run. It is a `KeyboardInterrupt`, so it ends a program that does not catch it.

    >>> try:
    ...     run = weir.load(url, duration="10m")
    ... except weir.Interrupted as interrupt:
    ...     run = interrupt.run

    Attributes:
        run: Result until then; its `interrupted` is true.
    """

    __module__ = "weir"

    run: Run

    def __init__(self, run: Run) -> None:
        """Wrap the result until now."""
        super().__init__(f"after {run.duration_s:.1f} s; the result until then is in .run")
        self.run = run

    def __reduce__(self) -> tuple[type[Interrupted], tuple[Run]]:
        """Pickle by the run instead of the message."""
        return Interrupted, (self.run,)
