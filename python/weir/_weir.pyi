"""Native module of weir, for the modules of this package only."""

from asyncio import AbstractEventLoop, Future
from collections.abc import Mapping, Sequence
from typing import Any, Literal, final

from weir._load import Time

__all__ = [
    "ClientHandle",
    "GroupHandle",
    "JobResultHandle",
    "Mailbox",
    "PolicyHandle",
    "RequestHandle",
    "ResponseHandle",
    "RunHandle",
    "SenderHandle",
    "SentRequestHandle",
    "ServiceHandle",
    "__version__",
    "abandon",
    "begin",
    "cli",
    "compare",
    "forked",
    "load",
    "release_connections",
    "serve",
    "simulate",
    "wait",
]

__version__: str

def cli(args: Sequence[str]) -> int:
    """Run the command line (program name first) and return its exit code; the GIL is released."""

def compare(args: Sequence[str], given: Sequence[Sequence[RunHandle] | None]) -> tuple[str, str, str, str]:
    """Run `weir compare ARGS...`, with runs for some sides: JSON, text, Markdown and HTML."""

def load(form: Mapping[str, object], command: Sequence[str]) -> RunHandle:
    """Run the load of the form (the arguments of `weir.load`, by name); the GIL is released."""

def serve(args: Sequence[str]) -> ServiceHandle:
    """Start the service of `weir serve ARGS...`; the GIL is released."""

def simulate(args: Sequence[str]) -> tuple[str, str]:
    """Run `weir simulate ARGS...`: JSON and text; the GIL is released."""

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
    def response_percentile(self, percentile: float) -> float:
        """Return a percentile in [0, 100] of the response times, in milliseconds."""
    def service_percentile(self, percentile: float) -> float:
        """Return a percentile in [0, 100] of the service times, in milliseconds."""

def begin(request: RequestHandle) -> Future[ResponseHandle]:
    """Begin a call; the future belongs to the running asyncio loop."""

def abandon(future: Future[Any]) -> None:
    """Cancel the call with this future, if it still runs."""

def wait(request: RequestHandle) -> ResponseHandle:
    """Make a call and wait for its outcome; the GIL is released."""

def release_connections() -> None:
    """Close unused connections of this thread and its asyncio loops; others' with their next call."""

def forked() -> None:
    """Mark this process as a child of a fork."""

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
        ended: responded, failed or deadline_exceeded.
        status: Status of the response; 0 without one.
        skipped: Extra attempts that were not sent, for want of budget or a slot.
        attempts: Reason, upstream, outcome, status, detail, start and duration in milliseconds.
    """

    ended: Literal["responded", "failed", "deadline_exceeded"]
    status: int
    version: str
    headers: list[tuple[bytes, bytes]]
    coding: str | None
    body: bytes
    request: SentRequestHandle
    elapsed_s: float
    skipped: int
    attempts: list[tuple[str, str, str, int | None, str | None, float, float]]

@final
class SenderHandle:
    """The core's sender, as Rust has it."""

    def __new__(cls, form: Mapping[str, object]) -> SenderHandle:
        """Read the options of a sender, by name, and begin to send."""
    recovered: tuple[int, int]
    """Jobs that a sender before it had in hand, and those of them that may have been sent."""
    def all(self) -> GroupHandle:
        """A group that gets all that ends from now on."""
    def stats(self) -> dict[str, Any]:
        """What was counted, by name."""
    def wait(self, for_end: bool, limit: Time | None) -> bool:
        """Wait until no submission waits, or for its end, with the GIL released; say whether it is so in time."""
    def watch(self, for_end: bool, mailbox: Mailbox) -> tuple[int, Future[None]] | None:
        """The same for an asyncio loop: None, or a letter and the future that is set with the next change."""
    def finish(self) -> None:
        """Have it end when no job is left."""
    def drain(self, grace: Time) -> None:
        """Have it end when what is out has been answered, or after `grace`."""
    def stop(self) -> None:
        """Have it end at once."""
    def join(self) -> str | None:
        """Wait for its thread and let go of the store; say why it ended by itself."""
    def abandon(self) -> None:
        """End it without ceremony."""

@final
class GroupHandle:
    """Jobs that were submitted together or one after the other, and what came of them."""

    def __new__(cls, sender: SenderHandle) -> GroupHandle:
        """An empty one."""
    open: int
    """Jobs without an end."""
    def submit(self, jobs: list[Any], are_several: bool) -> None:
        """Submit jobs: `weir.Job`, mappings, URLs; of several, what is wrong with one is told with its place."""
    def wait(self, need: int, limit: Time | None) -> bool:
        """Wait, with the GIL released; say whether it has come so far, or the time is over.

        -1: all accepted; -2: any ended, or none open; -3: the front ended; -4: any ended; -5: all ended; or a place.
        """
    def watch(self, need: int, mailbox: Mailbox) -> tuple[int, Future[None]] | None:
        """The same for an asyncio loop: None, or a letter and the future that is set with the next change."""
    def withdraw(self) -> None:
        """Take back what is not accepted yet."""
    def is_done(self, place: int) -> bool:
        """Whether this one has ended, or its sender has."""
    def number(self, place: int) -> int | None:
        """The store's number for the job."""
    def outcome(self, place: int) -> JobResultHandle | None:
        """What came of the job, if it has ended and was not taken."""
    def take_ended(self) -> list[JobResultHandle]:
        """Take what has ended, in the order of the ends."""
    def take_front(self) -> list[JobResultHandle]:
        """Take what has ended, in the order of submission, up to the first that has not."""
    def __len__(self) -> int:
        """Jobs that were not taken."""

@final
class JobResultHandle:
    """What became of a job, as Rust has it."""

    number: int
    id: str | None
    state: Literal["done", "dead_lettered", "expired"]
    status: int | None
    body: bytes
    failure: str | None
    attempts: int
    maybe_sent: bool
    key: str | None
    created_ms: int
    sent_ms: int | None
    ended_ms: int
    service_ms: float | None

@final
class Mailbox:
    """How the sender's thread wakes an asyncio loop."""

    def __new__(cls, asyncio: AbstractEventLoop) -> Mailbox:
        """For this loop, which has to listen to it."""
    def fileno(self) -> int:
        """What to listen to."""
    def on_readable(self) -> None:
        """Set all futures whose letters are there."""
    def forget(self, letter: int) -> None:
        """Nobody waits for this letter any more."""
