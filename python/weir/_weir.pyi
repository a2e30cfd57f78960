"""Native module of weir, for the modules of this package only."""

from asyncio import AbstractEventLoop, Future
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, final

from weir._decisions import BudgetHandle, CallDecisionHandle, CallRulesHandle, RetryCallHandle, RetryRulesHandle
from weir._script_handles import (
    CallRoute,
    CallSchemas,
    ScriptEvent,
    ScriptRequest,
    ScriptResponse,
    ScriptSession,
    StreamStep,
)
from weir._socket_handles import SocketOpen, SocketStep
from weir._time import Time

__all__ = ["BudgetHandle", "CallDecisionHandle", "CallRulesHandle", "RetryCallHandle", "RetryRulesHandle"]
__all__ += ["ClientHandle", "GroupHandle", "JobResultHandle", "Mailbox", "PolicyHandle", "StreamedCallHandle"]
__all__ += ["CallRoute", "CallSchemas", "RequestHandle", "ResponseHandle", "RunHandle"]
__all__ += ["ScriptEvent", "ScriptRequest", "ScriptResponse", "ScriptSession", "SocketOpen", "SocketStep"]
__all__ += ["SenderHandle", "SentRequestHandle", "ServiceHandle", "StartedLoadHandle", "StreamStep"]
__all__ += ["LimiterHandle", "LimiterSlotHandle", "TransportHandle"]
__all__ += ["GRPC_STATUS_NAMES", "__version__", "abandon", "begin", "compare", "is_secret_name", "json_body"]
__all__ += ["llm", "load", "now_ns"]
__all__ += ["quick_request", "release_connections", "run_script", "serve", "shares_credentials", "simulate"]
__all__ += ["split_url", "start_load", "wait", "without_secrets"]

__version__: str
GRPC_STATUS_NAMES: tuple[str, ...]
"""Names of the statuses of gRPC, by their codes."""

def compare(
    sides: Sequence[str], flags: Mapping[str, Sequence[str]], given: Sequence[Sequence[RunHandle] | None]
) -> tuple[str, str, str, str]:
    """Compare sides, with runs for some of them: JSON, text, Markdown and HTML."""

def llm(form: Mapping[str, object], command: Sequence[str]) -> tuple[RunHandle, list[str]]:
    """Run the load of the form (the arguments of `weir.llm`, by name): its result, and notes; the GIL is released."""

def load(
    form: Mapping[str, object], command: Sequence[str], script: object = None
) -> tuple[RunHandle, list[tuple[str, str]], str | None]:
    """Run the load of the form (the arguments of `weir.load`, by name); the GIL is released.

    Beside the result: names and texts of the summaries that a script writes itself, and why it could not.
    """

def start_load(form: Mapping[str, object], command: Sequence[str]) -> StartedLoadHandle:
    """Start the load of the form (the arguments of `weir.load`, by name) on a thread of its own."""

def run_script(args: Sequence[str], opener: Callable[..., object]) -> int:
    """Run a command line whose Python script the opener opens; return the exit code."""

def serve(service: str, flags: Mapping[str, Sequence[str]]) -> ServiceHandle:
    """Start a service with its arguments, by name; the GIL is released."""

def simulate(scenarios: Sequence[str], limiters: Sequence[str], seed: int | None) -> tuple[str, str]:
    """Run the scenarios with the limiters, by name: JSON and text; the GIL is released."""

def is_secret_name(name: str) -> bool:
    """Return whether a header, field, parameter or variable of this name is a secret."""

def split_url(url: str) -> tuple[str, str | None]:
    """Return the URL as it is sent, without user and password, and the value of an Authorization header with these."""

def without_secrets(text: str) -> str:
    """Return the text without what has a secret name, and without user and password of URLs."""

@final
class StartedLoadHandle:
    """Load that goes on."""

    def change(self, kind: Literal["rate", "users", "pause", "resume", "stop"], level: float = 0.0) -> float:
        """Change the load, once it has started; return the time from which the change holds."""

    def is_running(self) -> bool:
        """Whether it goes on."""

    def end(self) -> None:
        """End the load as Ctrl-C does; return at once."""

    def result(self, timeout: float | None) -> RunHandle | None:
        """Wait for the end; None: it has not come within the timeout, in seconds."""

@final
class ServiceHandle:
    """Running service."""

    host: str
    port: int
    url: str

    def stop(self, grace_s: float) -> None:
        """Stop the service; a second call does nothing."""

@final
class RunHandle:
    """Result of a load."""

    @staticmethod
    def from_json(text: str) -> RunHandle:
        """Parse the output of `to_json` or `weir load --out`."""
    def to_json(self) -> str:
        """Return the run as JSON."""
    def report(self, format: str) -> str:
        """Return a report of the run: text, ab, wrk, jmeter or json."""
    def html(self) -> str:
        """Return the HTML report of the run."""
    def response_percentile(self, percentile: float) -> float | None:
        """Return a percentile in [0, 100] of the response times, in milliseconds; None without a success."""
    def percentile_of_steps(self, percentile: float, steps: Sequence[int]) -> float | None:
        """Return a percentile in [0, 100] of the response times of steps by their indices, or of all responses."""
    def service_percentile(self, percentile: float) -> float | None:
        """Return a percentile in [0, 100] of the service times, in milliseconds."""

def begin(request: RequestHandle) -> Future[ResponseHandle]:
    """Begin a call; the future belongs to the running asyncio loop."""

def abandon(future: Future[Any]) -> None:
    """Cancel the call with this future, if it still runs."""

def wait(handle: RequestHandle) -> ResponseHandle:
    """Make a call and wait for its outcome; the GIL is released."""

def release_connections() -> None:
    """Close unused connections of this thread and its asyncio loops; others' with their next call."""

def shares_credentials(from_: str, to: str, /) -> bool:
    """Whether credentials that were given for one URL may be sent to another one."""

def now_ns() -> int:
    """Time of all calls of this process, in nanoseconds."""

@final
class ClientHandle:
    """State that the calls of a client share: upstreams, budgets, concurrency limit."""

    def __new__(cls, form: Mapping[str, object]) -> ClientHandle:
        """Parse the options of a client, by name."""
    def request(
        self, policy: PolicyHandle, method: str, url: str, headers: Sequence[tuple[bytes, bytes]], body: bytes | None
    ) -> RequestHandle:
        """Prepare a request."""
    def close(self) -> None:
        """Release the upstreams."""

@final
class PolicyHandle:
    """Policy of a call."""

    def __new__(cls, form: Mapping[str, object]) -> PolicyHandle:
        """Parse the options of a call, by name."""
    def may_repeat(self, method: str) -> bool: ...

@final
class RequestHandle:
    """Prepared request with its policy."""

@final
class SentRequestHandle:
    """Request of a response."""

    method: str
    url: str
    headers: list[tuple[bytes, bytes]]
    body: bytes

@final
class ResponseHandle:
    """Outcome of a call.

    Attributes:
        ended: responded, failed, deadline_exceeded or no_permit.
        status: Status of the response; 0 without one.
        body_length: Length of the body as received.
        max_response: Maximum body in bytes.
        is_too_large: Whether an attempt failed since its response was longer.
        failure_point: What failed of the last attempt, where its outcome does not say it.
        skipped: Extra attempts that were not sent, for want of budget or a slot.
        not_sent: These attempts, and the limit that stopped them, or why a failure was not repeated; None if all were.
        attempts: Reason, upstream, outcome, status, detail, start and duration in milliseconds.
        attempt_count: Number of attempts.
        received_headers: Headers in the order and spelling of the response, as far as they are known.
        reason_phrase: Reason phrase of the status; empty if there is none.
        is_whole: Whether the body is whole, and not received in pieces.
    """

    ended: Literal["responded", "failed", "deadline_exceeded", "no_permit"]
    status: int
    version: str
    headers: list[tuple[bytes, bytes]]
    received_headers: list[tuple[bytes, bytes]]
    reason_phrase: bytes
    is_whole: bool
    coding: str | None
    body: bytes
    body_length: int
    max_response: int | None
    is_too_large: bool
    failure_point: str
    request: SentRequestHandle
    elapsed_s: float
    skipped: int
    not_sent: str | None
    attempts: list[tuple[str, str, str, int | None, str | None, float, float]]
    attempt_count: int

@final
class TransportHandle:
    """State that the calls of a transport share: upstreams, budget, concurrency limit."""

    def __new__(cls, policy: PolicyHandle, form: Mapping[str, object]) -> TransportHandle:
        """Parse the options of a transport, by name."""
    def prepare(
        self,
        origin: tuple[bool, str, int],
        method: str,
        target: str,
        headers: list[tuple[bytes, bytes]],
        body: bytes | None,
        timeouts: tuple[float | None, float | None, float | None, float | None],
        server_name: str | None,
        rate: tuple[LimiterHandle, str] | None,
    ) -> StreamedCallHandle:
        """Prepare a call: to an origin (TLS, host, port); a body of None follows in pieces.

        The timeouts are those of connecting, writing, reading, and of the wait for a permit, in seconds; `rate` is a
        limiter and the call's key.
        """
    def close(self) -> None:
        """Release the upstreams."""

@final
class StreamedCallHandle:
    """A call in flight, with streamed bodies."""

    read_timeout: float | None
    """Longest wait for a piece of the response in seconds; None for no limit."""
    def is_sending(self) -> bool: ...
    def begin_on_loop(self) -> None:
        """Begin the call on the running asyncio loop; a `RuntimeError` without one."""
    def begin_on_thread(self) -> None:
        """Begin the call on a thread of its own, for blocking waits."""
    def arm(self) -> None:
        """Mark that Python will wait for a change, before it looks at several things."""
    def outcome(self, arm: bool = True) -> ResponseHandle | None:
        """Outcome of the call, but for what is left of the body; None if it is not there yet."""
    def chunk(self, arm: bool = True) -> bytes | tuple[str, str, str] | None:
        """Next piece of the body; empty at its end, None if it is not there yet; or kind, point, cause of a failure."""
    def trailers(self) -> list[tuple[bytes, bytes]]:
        """Trailers, once the body has ended."""
    def wants_body(self) -> bool:
        """Whether the rest of the request is of use."""
    def send(self, chunk: bytes) -> bool:
        """Add a piece of the request's body; False without room for it."""
    def end_body(self, error: str | None = None) -> None:
        """End the request's body; `error` is why it breaks off."""
    def changed(self) -> Future[bool | None]:
        """Future that is set when something has changed."""
    def wait(self, timeout: float | None = None) -> bool:
        """Block until something has changed, with the GIL released; False after the timeout in seconds."""
    def time_left(self) -> float | None:
        """Seconds until the deadline; None without one."""
    def close(self) -> None:
        """Close the call, whatever is left of it."""

@final
class SenderHandle:
    """The core's sender."""

    def __new__(cls, form: Mapping[str, object]) -> SenderHandle:
        """Start a sender with options by name."""
    recovered: tuple[int, int]
    """Number of jobs that a previous sender left leased, and of those that may have been sent."""
    def stats(self) -> dict[str, Any]:
        """Fields of `weir.SenderStats`, by name."""
    def wait(self, for_end: bool, limit: Time | None) -> bool:
        """Wait until no submission is pending, or for the end, with the GIL released; False after the timeout."""
    def watch(self, for_end: bool, mailbox: Mailbox) -> tuple[int, Future[None]] | None:
        """The same for an asyncio loop: None, or ID and future that is set at the next change."""
    def finish(self) -> None:
        """End the sender when no job is left."""
    def drain(self, grace: Time) -> None:
        """End the sender when no request is in flight, at the latest after `grace`."""
    def stop(self) -> None:
        """End the sender at once."""
    def join(self) -> str | None:
        """Join its thread and release the store; return the error that ended it."""
    def abandon(self) -> None:
        """End a sender that was not closed."""

@final
class GroupHandle:
    """A group of jobs, and their results."""

    def __new__(cls, sender: SenderHandle) -> GroupHandle:
        """New empty group."""
    @staticmethod
    def of_all(sender: SenderHandle) -> GroupHandle:
        """Group that receives each result of the sender from now on."""
    open: int
    """Number of jobs without an end."""
    def submit(self, jobs: list[Any], are_several: bool) -> None:
        """Submit `weir.Job`, mappings or URLs; with `are_several`, errors name the index of the invalid job."""
    def wait(self, need: int, limit: Time | None) -> bool:
        """Wait for a condition, with the GIL released; False after the timeout.

        -1: all accepted; -2: any ended, or none open; -3: the front ended; -4: any ended; -5: all ended; or an index.
        """
    def watch(self, need: int, mailbox: Mailbox) -> tuple[int, Future[None]] | None:
        """The same for an asyncio loop: None, or ID and future that is set at the next change."""
    def withdraw(self) -> None:
        """Withdraw jobs that are not accepted yet."""
    def is_done(self, place: int) -> bool:
        """Whether this job or the sender has ended."""
    def number(self, place: int) -> int | None:
        """Number of the job in the store."""
    def outcome(self, place: int) -> JobResultHandle | None:
        """Result of the job, if it has ended and the result was not taken."""
    def take_ended(self) -> list[JobResultHandle]:
        """Take all results, in the order of the ends."""
    def take_front(self) -> list[JobResultHandle]:
        """Take results in the order of submission, up to the first open job."""
    def __len__(self) -> int:
        """Number of jobs whose results were not taken."""

@final
class JobResultHandle:
    """Result of a job."""

    number: int
    id: str | None
    state: Literal["done", "dead_lettered", "expired"]
    status: int | None
    body: bytes
    failure: str | None
    attempts: int
    maybe_sent: bool
    last_key: str | None
    created_ms: int
    sent_ms: int | None
    ended_ms: int
    service_ms: float | None

@final
class LimiterHandle:
    """Limits of any number of keys, and the lines of those that wait; wakes are tickets, and a line for the log."""

    def __new__(cls, form: Mapping[str, object]) -> LimiterHandle: ...
    def is_ours(self) -> bool: ...
    def is_remote(self) -> bool: ...
    def set_wake(self, wake: Callable[[tuple[list[int], str | None]], None]) -> None: ...
    def join(self, key: str, weight: int, timeout: Time | None) -> tuple[int, float | None]: ...
    def look(self, ticket: int) -> tuple[LimiterSlotHandle | None, float, bool, tuple[list[int], str | None]]: ...
    def cancel(self, ticket: int) -> tuple[list[int], str | None]: ...
    def work(self, within: float) -> tuple[list[int], str | None] | None: ...
    def close(self) -> None: ...
    def release_in_child(self) -> None: ...

@final
class LimiterSlotHandle:
    """Slot of a limiter."""

    def is_open(self) -> bool: ...
    def done(self) -> tuple[list[int], str | None]: ...
    def responded(self, status: int, headers: list[tuple[str, str]]) -> tuple[list[int], str | None]: ...
    def abandoned(self) -> tuple[list[int], str | None]: ...
    def unsent(self) -> tuple[list[int], str | None]: ...

@final
class Mailbox:
    """Wake-ups of an asyncio loop by the sender's thread."""

    def __new__(cls, asyncio: AbstractEventLoop) -> Mailbox:
        """Mailbox of this loop, which has to watch `fileno`."""
    def fileno(self) -> int:
        """File descriptor to watch."""
    def on_readable(self) -> None:
        """Set the futures of all completed IDs."""
    def forget(self, id: int) -> None:
        """Forget a future that is not awaited any more."""

def quick_request(
    session: ScriptSession,
    method: str,
    url: object,
    options: Mapping[str, object],
    timeout: object = None,
    is_fast: bool | None = None,
) -> ScriptRequest | None:
    """Prepare a request from common arguments; None if Python has to."""

def json_body(value: object) -> bytes | None:
    """Return the body of an object in JSON; None if Python has to write it."""
