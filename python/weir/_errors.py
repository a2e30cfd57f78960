"""What weir raises.

::

    Exception
    └── WeirError                  anything below
        ├── UsageError             a value that makes no sense; also a ValueError
        ├── SetupError             the run could not start: nobody there, no TLS, too few open files
        ├── SendError              of Sender or AsyncSender
        │   ├── JobFailed          the job was not delivered: `JobResult.raise_for_state`
        │   │   └── JobExpired     its time was over before that; also a TimeoutError
        │   ├── NotAccepted        the queue does not take the job: too large, or no room on the disk
        │   └── SenderEnded        the sender has ended before the job did
        └── ClientError            a call of Client or AsyncClient has no answer to give
            ├── DeadlineExceeded   its deadline came first; also a TimeoutError
            ├── AllAttemptsFailed  every attempt failed, and there was nothing left to try
            │   ├── ConnectFailed  none reached the upstream: name, connection or TLS; also a ConnectionError
            │   └── TimedOut       all took longer than `timeout`; also a TimeoutError
            ├── DecodingError      the body is not what its Content-Encoding says
            └── HTTPStatusError    the status is an error: `Response.raise_for_status`
    KeyboardInterrupt
    └── Interrupted                Ctrl-C during a run; has what was measured

A failed *request* of a load is never an exception: it is counted, by kind, in `Run.failures` and `Run.status`. A
failed *call* of a client is one. A failed *job* of a sender is a `JobResult`, and raises if asked to. An
argument of the wrong type is a plain `TypeError`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

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
    "NotAccepted",
    "SendError",
    "SenderEnded",
    "SetupError",
    "TimedOut",
    "UsageError",
    "WeirError",
]


class WeirError(Exception):
    """The base of weir's errors."""

    __module__ = "weir"


class UsageError(WeirError, ValueError):
    """What was asked for makes no sense; the message names the argument, its value and a remedy."""

    __module__ = "weir"


class SetupError(WeirError):
    """The run could not start, and no request was sent; the message says why, and often what to do."""

    __module__ = "weir"


class ClientError(WeirError):
    """A call has no answer to give."""

    __module__ = "weir"

    attempts: Sequence[Attempt]
    """What was tried, in the order of launch."""

    response: Response | None
    """The last answer that came, if any did. It does not go along when the error is pickled."""

    def __init__(self, message: str, attempts: Sequence[Attempt] = (), response: Response | None = None) -> None:
        """Say what happened, and keep what is known of it."""
        super().__init__(message)
        self.attempts = tuple(attempts)
        self.response = response

    def __reduce__(self) -> tuple[type[ClientError], tuple[str, Sequence[Attempt]]]:
        """Pickle without the response, which is Rust's."""
        return type(self), (str(self), self.attempts)


class DeadlineExceeded(ClientError, TimeoutError):  # noqa: N818  says what happened
    """The call's deadline came before a success; what was still under way is cancelled."""

    __module__ = "weir"


class AllAttemptsFailed(ClientError):  # noqa: N818  says what happened
    """Every attempt failed, and there was nothing left to try; `attempts` has each one's kind."""

    __module__ = "weir"


class ConnectFailed(AllAttemptsFailed, ConnectionError):  # noqa: N818  says what happened
    """No attempt reached the upstream: the name has no address, nobody is there, or there is no TLS."""

    __module__ = "weir"


class TimedOut(AllAttemptsFailed, TimeoutError):  # noqa: N818  says what happened
    """Each attempt took longer than `timeout`."""

    __module__ = "weir"


class DecodingError(ClientError):
    """The body is not what its Content-Encoding says."""

    __module__ = "weir"


class HTTPStatusError(ClientError):
    """The status is not that of a success; its `response` is never None."""

    __module__ = "weir"

    response: Response


class SendError(WeirError):
    """A job was not delivered, or nobody knows yet."""

    __module__ = "weir"


class JobFailed(SendError):  # noqa: N818  says what happened
    """The job is in the graveyard: its tries are used up, or another would not help."""

    __module__ = "weir"

    result: JobResult
    """What became of it. It does not go along when the error is pickled."""

    def __init__(self, message: str, result: JobResult | None = None) -> None:
        """Say what happened, and keep what is known of it."""
        super().__init__(message)
        if result is not None:
            self.result = result


class JobExpired(JobFailed, TimeoutError):  # noqa: N818  says what happened
    """The job's time was over before it could be delivered."""

    __module__ = "weir"


class NotAccepted(SendError):  # noqa: N818  says what happened
    """The queue does not take the job: it is too large, or the disk is full. What was accepted before is safe."""

    __module__ = "weir"


class SenderEnded(SendError):  # noqa: N818  says what happened
    """The sender has ended before the job did; a job in a file stays there for the next sender."""

    __module__ = "weir"


class Interrupted(KeyboardInterrupt):
    """Ctrl-C ended a run early. Being a `KeyboardInterrupt`, it ends a program that does not ask for it.

    >>> try:
    ...     run = weir.load(url, duration="10m")
    ... except weir.Interrupted as interrupt:
    ...     run = interrupt.run
    """

    __module__ = "weir"

    run: Run
    """What was measured until then; its `interrupted` is true."""

    def __init__(self, run: Run) -> None:
        """Wrap what was measured."""
        super().__init__(f"after {run.duration_s:.1f} s; what was measured is in .run")
        self.run = run

    def __reduce__(self) -> tuple[type[Interrupted], tuple[Run]]:
        """Pickle by the run, not by the message."""
        return Interrupted, (self.run,)
