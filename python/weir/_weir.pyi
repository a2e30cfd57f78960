"""The compiled half of weir; the package's own modules are its only users."""

from asyncio import Future
from collections.abc import Mapping, Sequence
from typing import Any, final

__all__ = [
    "AnswerHandle",
    "AskedHandle",
    "ClientHandle",
    "PolicyHandle",
    "RequestHandle",
    "RunHandle",
    "ServiceHandle",
    "__version__",
    "abandon",
    "begin",
    "cli",
    "forked",
    "load",
    "serve",
    "simulate",
    "sweep",
    "sweep_guest",
    "wait",
]

__version__: str

def cli(args: Sequence[str]) -> int:
    """Run the command line (the program's name first) and return its exit code; the GIL is released."""

def load(form: Mapping[str, object], command: Sequence[str]) -> RunHandle:
    """Drive the load that the form (the arguments of `weir.load`, by name) describes; the GIL is released."""

def serve(args: Sequence[str]) -> ServiceHandle:
    """Start what `weir serve ARGS...` would start; the GIL is released."""

def simulate(args: Sequence[str]) -> tuple[str, str]:
    """Run what `weir simulate ARGS...` would run: as JSON, and as text; the GIL is released."""

@final
class ServiceHandle:
    """A running service, as Rust has it."""

    host: str
    port: int
    url: str

    def stop(self, grace_s: float) -> None:
        """Stop it; does nothing the second time."""

@final
class RunHandle:
    """The result of a load, as Rust has it."""

    @staticmethod
    def from_json(text: str) -> RunHandle:
        """Read what `to_json` or `weir load --out` wrote."""
    def to_json(self) -> str:
        """The run as JSON."""
    def report(self, format: str) -> str:
        """The run as a report: text, ab, wrk, jmeter or json."""
    def response_percentile(self, percentile: float) -> float:
        """A percentile in [0, 100] of the response times, in milliseconds."""
    def service_percentile(self, percentile: float) -> float:
        """A percentile in [0, 100] of the service times, in milliseconds."""

def begin(request: RequestHandle) -> Future[AnswerHandle]:
    """Begin a call; the future is the running asyncio loop's."""

def abandon(future: Future[Any]) -> None:
    """Cancel the call that has this future, if it still runs."""

def wait(request: RequestHandle) -> AnswerHandle:
    """Make a call and wait for its end; the GIL is released."""

def sweep() -> None:
    """Close connections of this thread that nobody needs."""

def sweep_guest() -> None:
    """Close connections of the running asyncio loop that nobody needs."""

def forked() -> None:
    """Tell that this process is a child."""

@final
class ClientHandle:
    """What a client's calls share, as Rust has it."""

    def __new__(cls, form: Mapping[str, object]) -> ClientHandle:
        """Read the options of a client, by name."""
    def request(
        self, policy: PolicyHandle, method: str, url: str, headers: Sequence[tuple[bytes, bytes]], body: bytes | None
    ) -> RequestHandle:
        """Prepare a request."""
    def close(self) -> None:
        """Let go of the upstreams."""

@final
class PolicyHandle:
    """What a call may do, as Rust has it."""

    def __new__(cls, form: Mapping[str, object]) -> PolicyHandle:
        """Read the options of a call, by name."""

@final
class RequestHandle:
    """A request, and what may be done for its answer."""

@final
class AskedHandle:
    """What was asked, as Rust has it."""

    method: str
    url: str
    headers: list[tuple[bytes, bytes]]
    body: bytes

@final
class AnswerHandle:
    """How a call ended, as Rust has it."""

    ended: str
    """answered, failed or late."""
    status: int
    """0 without an answer."""
    version: str
    headers: list[tuple[bytes, bytes]]
    coding: str | None
    body: bytes
    request: AskedHandle
    elapsed_s: float
    suppressed: int
    attempts: list[tuple[str, str, str, int | None, str | None, float, float]]
    """Why, upstream, outcome, status, cause, start and length in milliseconds."""
