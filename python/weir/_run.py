"""The result of a load, typed.

Each class here is one object of `docs/run.schema.json`, field by field; a test holds the two and Rust's own form of
them together. Names carry their units.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from os import PathLike
from types import MappingProxyType, UnionType
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from weir import _weir
from weir._page import write_page

__all__ = [
    "Agent",
    "Bytes",
    "Connections",
    "Manifest",
    "Objective",
    "Point",
    "Rate",
    "Requests",
    "Responses",
    "Run",
    "Spread",
    "Target",
    "Trust",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What was asked."""

    url: str
    """The URL as given, without user and password."""
    method: str
    """The method."""
    host: str
    """The host that was asked."""
    port: int
    """The port that was asked."""
    path: str
    """Path and query."""
    server: str | None
    """What the service calls itself: the `Server` header of the first answer."""
    body_length: int | None
    """Body length of the first answer, in bytes."""
    other_lengths: int
    """Answers with another body length than the first."""
    tls: str | None
    """TLS version and cipher, if there is TLS."""
    failure_details: Mapping[str, str]
    """What the first failure of each kind said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Requests:
    """How many requests, and how they ended; `total` = `ok` + `failed`."""

    total: int
    """All that were meant to start in the window and ended: sent, or dropped."""
    ok: int
    """Whole answers with a status below 400."""
    failed: int
    """All others, dropped ones included."""
    dropped: int
    """Of the failed: never sent, since no connection was free in time."""
    waited: int
    """Sent late because all connections were busy."""
    unfinished: int
    """Cut off by an interrupt; not in `total`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """Requests per second over the window."""

    offered: float
    """Meant to start; in the closed loop the same as `achieved`."""
    achieved: float
    """Answered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """The figures of a distribution, all in milliseconds; all 0 if it is empty."""

    mean: float
    """Arithmetic mean."""
    sd: float
    """Standard deviation of the population."""
    min: float
    """Least value."""
    p50: float
    """50th percentile, the median."""
    p75: float
    """75th percentile."""
    p90: float
    """90th percentile."""
    p95: float
    """95th percentile."""
    p99: float
    """99th percentile."""
    p999: float
    """99.9th percentile."""
    max: float
    """Greatest value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Responses:
    """Times of all responses, whatever their status, as ab and wrk count them."""

    response_ms: Spread
    """From the intended start to the whole response, in milliseconds."""
    service_ms: Spread
    """From the send to the whole response, in milliseconds."""
    first_byte_ms: Spread
    """From the send to its first byte, in milliseconds."""
    histogram: str = field(repr=False)
    """The response times, in the form of `Run.histogram`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bytes:
    """Bytes moved for the requests of the window."""

    read: int = field(metadata={"json": "in"})
    """Read, heads and framing included (``in`` in JSON, a word that Python keeps for itself)."""
    written: int = field(metadata={"json": "out"})
    """Written (``out`` in JSON)."""
    body_in: int
    """Read, bodies only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Connections:
    """What connections were made, over the whole run."""

    limit: int
    """The cap: most connections (or users) at a time."""
    opened: int
    """Made in all."""
    most_backlog: int
    """Most requests that waited for a connection at one moment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trust:
    """Whether a run may be believed."""

    ok: bool
    """Whether nothing speaks against it."""
    reasons: tuple[str, ...]
    """What speaks against it, a sentence each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    """An objective and what became of it."""

    objective: str
    """As given, e.g. ``p99<200ms``."""
    ok: bool
    """Whether it held."""
    measured: str
    """What was measured, in words: figure, clock and unit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """One agent's part of a run that agents drove."""

    node: str
    """The node that it ran on."""
    threads: int
    """Its generator threads; 0 if there was nothing for it to do."""
    requests: int
    """Requests that ended: sent, or dropped."""
    ok: int
    """Of these, whole answers with a status below 400."""
    rate_per_s: float
    """Answers per second."""
    response_ms: Spread
    """From the intended start to the whole answer, over its successes, in milliseconds."""
    lateness_ms: Spread
    """How late it sent, in milliseconds."""
    cpu_us_per_request: float
    """User and system time of it per request, in microseconds."""
    cpu_share: float
    """Its busiest thread's share of a core, in [0, 1]."""
    began_ms: float
    """How long after the agreed moment it began, in milliseconds."""
    clock_error_ms: float
    """The most by which its clock may differ from what it is taken for, in milliseconds."""
    lost: str | None
    """Why it was lost in the middle of the run, if it was."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One stretch of a run: a second, or more of them in a run of over 20 minutes."""

    t_s: float
    """Where it starts, in seconds since the start of the run."""
    width_s: float
    """How long it is, in seconds."""
    ok: int
    """Requests that ended well in it."""
    failed: int
    """Requests that failed in it."""
    responses: int
    """Whole responses in it, whatever their status."""
    bytes_in: int
    """Bytes read in it."""
    in_flight: int
    """Requests in flight at its end."""
    backlog: int
    """Arrivals that waited for a connection at its end."""
    p50_ms: float
    """Median response time of its successes."""
    p99_ms: float
    """99th percentile of their response times."""
    max_ms: float
    """Longest of their response times."""
    histogram: str = field(repr=False)
    """All their response times: HdrHistogram V2 at two digits, in nanoseconds, base64."""
    failed_p50_ms: float
    """Median response time of its failures: until the response was there, or until none could come."""
    failed_p99_ms: float
    """99th percentile of their response times."""
    failed_max_ms: float
    """Longest of their response times."""
    failed_histogram: str = field(repr=False)
    """All their response times, in the form of `histogram`; empty if there are none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What was run, where and when."""

    command: tuple[str, ...]
    """The command, or the call, that made the run; passwords left out."""
    seed: int
    """The seed that repeats its arrivals and bodies."""
    started_unix_s: float
    """When it started, in seconds since 1970."""
    threads: int
    """Generator threads."""
    hostname: str
    """Name of the machine."""
    os: str
    """Operating system and version."""
    cpu: str
    """Processor model."""
    cores: int
    """Cores that the generator could use."""
    memory_mib: int
    """Memory of the machine, in MiB."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Run:
    """The result of a load: read-only, comparable, and it pickles. `print` shows it as the text report.

    *Response time* is what a user waits: from the moment when the request was meant to start. *Service time* counts
    from the moment when it was really sent. In a closed loop they differ by next to nothing; in an open loop by the
    time that requests waited for a connection, if they did (`requests.waited`), and by weir's own lateness
    (`lateness_ms`).

    Times are those of successes; failures, which may come fast, have their own.
    """

    weir: str
    """The version of weir that made it."""
    schema: int
    """The version of this object's form in JSON."""
    model: Literal["closed", "open"]
    """Who set the pace: users who wait for their answers, or arrivals that come regardless."""
    target: Target
    """What was asked."""
    requests: Requests
    """How many requests, and how they ended."""
    rate_per_s: Rate
    """Requests per second."""
    duration_s: float
    """Length of the measured window, without warm-up, in seconds."""
    warmup_s: float
    """Length of the warm-up before it, in seconds."""
    response_ms: Spread
    """From the intended start to the whole answer, over successes, in milliseconds."""
    service_ms: Spread
    """From the send to the whole answer, over successes, in milliseconds."""
    first_byte_ms: Spread
    """From the send to the first byte of the answer, over successes, in milliseconds."""
    failed_ms: Spread
    """From the intended start to the end of failed requests, in milliseconds.

    That is until the response was there, or until it was clear that none would be. Dropped requests, never sent, are
    not among them.
    """
    responses: Responses
    """Times of all responses, whatever their status."""
    connect_ms: Spread
    """Time to connect, over the requests that waited for a connection to be made, in milliseconds."""
    bytes: Bytes
    """Bytes moved."""
    status: Mapping[int, int]
    """Answers by status."""
    failures: Mapping[str, int]
    """Failed requests by kind; together they are `requests.failed`.

    Kinds are ``connect``, ``tls``, ``timeout``, ``closed``, ``reset``, ``protocol``, ``dropped`` (never sent, since no
    connection was free in time), ``4xx`` and ``5xx``.
    """
    connections: Connections
    """What connections were made."""
    lateness_ms: Spread
    """How late the generator itself sent, in milliseconds."""
    cpu_us_per_request: float
    """User and system time of the generator per request, in microseconds."""
    cpu_share: float
    """The busiest generator thread's share of a core, in [0, 1]."""
    in_flight_mean: float
    """Requests in the system, averaged over time."""
    trust: Trust
    """Whether the run may be believed."""
    slo: tuple[Objective, ...]
    """Objectives, in the order given, held or not."""
    interrupted: bool
    """Whether the run was cut short by an interrupt."""
    agents: tuple[Agent, ...]
    """The part of each agent, where agents drove it."""
    series: tuple[Point, ...]
    """The run second by second, warm-up included."""
    histogram: str
    """Response times of successes: HdrHistogram V2 at three digits, in nanoseconds, base64; empty without any."""
    service_histogram: str
    """Their service times, in the same form."""
    failed_histogram: str
    """The times of `failed_ms`, in the same form."""
    manifest: Manifest
    """What was run, where and when."""
    _handle: _weir.RunHandle = field(compare=False)

    @classmethod
    def from_json(cls, text: str) -> "Run":
        """Read what `to_json` or ``weir load --out`` wrote.

        Raises:
            UsageError: It is not a run, or one of a form that this weir does not know.
        """
        return cls._of(_weir.RunHandle.from_json(text))

    @classmethod
    def _of(cls, handle: _weir.RunHandle) -> "Run":
        return _read(cls, json.loads(handle.to_json()), _handle=handle)

    def to_json(self) -> str:
        """Return the run as JSON (`docs/run.schema.json`), for `from_json`, ``weir report`` and ``weir compare``."""
        return self._handle.to_json()

    def to_dict(self) -> dict[str, Any]:
        """Return the object of `to_json` as a new dictionary; its keys are JSON's, so statuses are strings."""
        data: dict[str, Any] = json.loads(self.to_json())
        return data

    def percentile(self, percentile: float) -> float:
        """Return a percentile, in [0, 100], of the response times of successes, in milliseconds; 0 without any.

        It is exact to 0.1 % of itself.

        Raises:
            UsageError: It is not in [0, 100].
        """
        return self._handle.response_percentile(percentile)

    def service_percentile(self, percentile: float) -> float:
        """Return a percentile, in [0, 100], of the service times, in milliseconds; see `percentile`."""
        return self._handle.service_percentile(percentile)

    def report(self, format: Literal["text", "ab", "wrk", "jmeter", "json"] = "text") -> str:
        """Return the run as a report: weir's own, or that of another tool, field by field.

        Raises:
            UsageError: No such format.
        """
        return self._handle.report(format)

    def html(self, path: str | PathLike[str] | None = None) -> str:
        """Return the run as a page to look at (`docs/page.md`): one HTML file that asks no network for anything.

        Args:
            path: A file to write it to, too.

        Raises:
            OSError: The file cannot be written.
        """
        return write_page(self._handle.html(), path)

    def __str__(self) -> str:
        """Return the text report."""
        return self.report()

    def __repr__(self) -> str:
        """Say in one line which run it is."""
        return (
            f"<weir.Run {self.model} {self.target.method} {self.target.url}: {self.requests.total} requests, "
            f"{self.requests.failed} failed, {self.rate_per_s.achieved:.1f}/s, p99 {self.response_ms.p99:.3g} ms>"
        )

    def __reduce__(self) -> tuple[Callable[[str], "Run"], tuple[str]]:
        """Pickle as JSON."""
        return Run.from_json, (self.to_json(),)


_T = TypeVar("_T")


def _read(kind: type[_T], data: Mapping[str, Any], **private: object) -> _T:
    """Make a dataclass from JSON's object: each field by its type, each JSON key by the field's name in JSON."""
    hints = get_type_hints(kind)
    public = [f for f in fields(kind) if f.name not in private]  # type: ignore[arg-type]  # dataclasses only
    values = {f.name: _value(hints[f.name], data[f.metadata.get("json", f.name)]) for f in public}
    return kind(**values, **private)


def _value(kind: Any, value: Any) -> Any:
    if value is None or isinstance(kind, UnionType):
        return value
    if is_dataclass(kind):
        return _read(kind, value)  # type: ignore[arg-type]  # a class, not an instance
    if get_origin(kind) is tuple:
        return tuple(_value(get_args(kind)[0], item) for item in value)
    if get_origin(kind) is Mapping:
        key, _ = get_args(kind)
        return MappingProxyType({key(name): item for name, item in value.items()})
    return value
