"""The compiled half of weir; the package's own modules are its only users."""

from collections.abc import Mapping, Sequence
from typing import final

__all__ = ["RunHandle", "ServiceHandle", "__version__", "cli", "load", "serve"]

__version__: str

def cli(args: Sequence[str]) -> int:
    """Run the command line (the program's name first) and return its exit code; the GIL is released."""

def load(form: Mapping[str, object], command: Sequence[str]) -> RunHandle:
    """Drive the load that the form (the arguments of `weir.load`, by name) describes; the GIL is released."""

def serve(args: Sequence[str]) -> ServiceHandle:
    """Start what `weir serve ARGS...` would start; the GIL is released."""

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
