"""Result of a load test, typed.

Each class is an object of `docs/schema/run.schema.json`, field by field; a test compares both with Rust's
structs. Names have their units.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from os import PathLike
from types import MappingProxyType, UnionType
from typing import Any, Literal, TypeVar, cast, get_args, get_origin, get_type_hints

from weir import _weir
from weir._page import write_page
from weir._run_notebook import data_frame, framed
from weir._run_parts import (
    Agent,
    Bytes,
    Connections,
    Http2,
    Interval,
    Manifest,
    Objective,
    Percentiles,
    Rate,
    Requests,
    Responses,
    Target,
    Trust,
)
from weir._run_replay import Replay
from weir._run_script import Script, ScriptCheck, ScriptException, ScriptMetric
from weir._run_series import LlmPoint, PointTimes, StreamPoint, WebSocketPoint
from weir._run_steps import (
    Change,
    Changes,
    CheckResult,
    EndReason,
    FailureSample,
    Iterations,
    ScenarioResult,
    StepInterval,
    StepResult,
)
from weir._run_streams import Llm, Streams
from weir._run_trace import ReplayedTrace, TracedClient
from weir._run_websocket import WebSockets

__all__ = [
    "Agent",
    "Bytes",
    "Change",
    "Changes",
    "CheckResult",
    "Connections",
    "EndReason",
    "FailureSample",
    "Http2",
    "Interval",
    "Iterations",
    "Llm",
    "LlmPoint",
    "Manifest",
    "Objective",
    "Percentiles",
    "PointTimes",
    "Rate",
    "Replay",
    "ReplayedTrace",
    "Requests",
    "Responses",
    "Run",
    "ScenarioResult",
    "Script",
    "ScriptCheck",
    "ScriptException",
    "ScriptMetric",
    "StepInterval",
    "StepResult",
    "StreamPoint",
    "Streams",
    "Target",
    "TracedClient",
    "Trust",
    "WebSocketPoint",
    "WebSockets",
]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Run:
    """Result of a load test: read-only, comparable, and it pickles. `print` shows the text report.

    *Response time* counts from the intended start of a request, *service time* from its send. In a closed loop they
    hardly differ; in an open loop by the time that requests waited for a connection (`requests.waited`), and by weir's
    own lateness (`lateness_ms`). Times are those of successes; failures have their own. Figures are of the window after
    the warm-up, unless they are described otherwise.

    Attributes:
        weir: Version of weir that wrote it.
        schema: Version of this format; it grows when a field changes its meaning or is removed.
        model: Kind of loop: users who wait for responses (closed), or arrivals independent of responses (open).
        target: Target of the requests.
        requests: Counts of requests by outcome.
        rate_per_s: Requests per second.
        duration_s: Length of the measured window, without the warm-up, in seconds.
        warmup_s: Length of the warm-up before it, in seconds.
        response_ms: Time from the intended start to the whole response, over successes, in milliseconds.
        service_ms: Time from the send to the whole response, over successes, in milliseconds.
        first_byte_ms: Time from the send to the first byte of the response, over successes, in milliseconds.
        failed_ms: Time from the intended start to the end of failed requests, in milliseconds: until the response had
            arrived, or until it was clear that none would. Without dropped requests, which were never sent.
        responses: Times of all responses, whatever their status, as ab and wrk count them.
        connect_ms: Time to connect, over the requests that waited for a connection to be made, in milliseconds.
        bytes: Bytes transferred.
        status: Number of responses by status: numbers of HTTP, names of gRPC such as ``"UNAVAILABLE"``.
        accepted: Successes with a status of 400 and above, which their step or a script accepts, by status.
        failures: Failed requests by kind: ``connect``, ``tls``, ``timeout``, ``closed``, ``reset``, ``protocol``,
            ``broken_off``, ``stalled``, ``body``, ``dropped`` (never sent, since no connection was free in time),
            ``4xx``, ``5xx``, ``check``; their sum is `requests.failed`.
        connections: Connections of the run.
        http2: HTTP/2 of these connections; None if it was not asked for.
        streams: Responses as streams of events; None if they were not read as such.
        llm: Requests to a language model; None if they were not such.
        websocket: WebSocket, whose messages are the requests; None if it was not spoken.
        script: What a script of k6 has measured itself; None without one.
        replay: Log that was replayed; None if there was none.
        trace: Trace of a language model that was replayed; None if there was none.
        lateness_ms: Lateness of the generator itself, in milliseconds.
        cpu_us_per_request: User and system time of the generator per request, in microseconds; None without requests.
        cpu_utilization: CPU utilization of the busiest generator thread, in [0, 1].
        in_flight_mean: Requests in the system, averaged over time.
        trust: Whether the run is valid.
        iterations: Iterations of scenarios; None without scenarios.
        scenarios: Scenarios, in order; empty without scenarios.
        steps: Steps of the scenarios, in order; empty without scenarios.
        slo: Objectives with their outcomes, in the order given.
        interrupted: Whether an interrupt ended the run.
        ended_by: Reason why the run ended before its time; None otherwise.
        aborted: Condition that ended the run early, with the figure that fulfilled it; None otherwise.
        lost_log_lines: Lines of the log of requests (`--jtl`) that a full disk had no room for; None without any.
        changes: Changes of the load while it ran; None without any.
        agents: Figures of each agent, if agents generated the load.
        series: Time series by the second, warm-up included.
        histogram: Histogram of response times of successes: HdrHistogram V2 at three digits, in nanoseconds, base64;
            empty without any.
        service_histogram: Histogram of service times of successes, in the same format.
        failed_histogram: Histogram of the times of `failed_ms`, in the same format.
        manifest: Command, seed, time and machine.
    """

    weir: str
    schema: int
    model: Literal["closed", "open"]
    target: Target
    requests: Requests
    rate_per_s: Rate
    duration_s: float
    warmup_s: float
    response_ms: Percentiles
    service_ms: Percentiles
    first_byte_ms: Percentiles
    failed_ms: Percentiles
    responses: Responses
    connect_ms: Percentiles
    bytes: Bytes
    status: Mapping[int | str, int]
    accepted: Mapping[int | str, int] = field(default_factory=dict)
    failures: Mapping[str, int]
    connections: Connections
    http2: Http2 | None = None
    streams: Streams | None = None
    llm: Llm | None = None
    websocket: WebSockets | None = None
    script: Script | None = None
    replay: Replay | None = None
    trace: ReplayedTrace | None = None
    lateness_ms: Percentiles
    cpu_us_per_request: float | None
    cpu_utilization: float
    in_flight_mean: float
    trust: Trust
    iterations: Iterations | None = None
    scenarios: tuple[ScenarioResult, ...] = ()
    steps: tuple[StepResult, ...] = ()
    slo: tuple[Objective, ...]
    interrupted: bool
    ended_by: EndReason | None = None
    aborted: str | None = None
    lost_log_lines: int | None = None
    changes: Changes | None = None
    agents: tuple[Agent, ...]
    series: tuple[Interval, ...]
    histogram: str
    service_histogram: str
    failed_histogram: str
    manifest: Manifest
    _handle: _weir.RunHandle = field(compare=False)

    @classmethod
    def from_json(cls, text: str) -> "Run":
        """Read a run that `to_json` or ``weir load --out`` saved.

        Returns:
            The run.

        Raises:
            UsageError: Not a run, or a run of another schema.
        """
        return cls._of(_weir.RunHandle.from_json(text))

    @classmethod
    def _of(cls, handle: _weir.RunHandle) -> "Run":
        return _read(cls, json.loads(handle.to_json()), _handle=handle)

    def to_json(self) -> str:
        """Write the run as JSON, for `from_json`, ``weir report`` and ``weir compare``.

        Returns:
            An object as `docs/schema/run.schema.json` describes it.
        """
        return self._handle.to_json()

    def to_dict(self) -> dict[str, Any]:
        """Convert the run to plain data.

        Returns:
            The object of `to_json` as a new dictionary; its keys are those of JSON, so statuses are strings.
        """
        data: dict[str, Any] = json.loads(self.to_json())
        return data

    def percentile(self, percentile: float) -> float | None:
        """Compute a percentile of the response times of successes.

        Args:
            percentile: In [0, 100].

        Returns:
            The time in milliseconds, exact to 0.1%; None without a success.

        Raises:
            UsageError: The percentile is not in [0, 100].
        """
        return self._handle.response_percentile(percentile)

    def service_percentile(self, percentile: float) -> float | None:
        """Compute a percentile of the service times of successes.

        Args:
            percentile: In [0, 100].

        Returns:
            The time in milliseconds; see `percentile`.
        """
        return self._handle.service_percentile(percentile)

    def report(self, format: Literal["text", "ab", "wrk", "jmeter", "json"] = "text") -> str:
        """Write the run as a report.

        Args:
            format: weir's own report (text), that of another tool, or JSON.

        Returns:
            The text of the report.

        Raises:
            UsageError: Unknown format.
        """
        return self._handle.report(format)

    def html(self, path: str | PathLike[str] | None = None) -> str:
        """Write the run as an HTML report (`docs/html-report.md`), which sends no network request.

        Args:
            path: File to write, if any.

        Returns:
            The HTML.

        Raises:
            OSError: The file cannot be written.
        """
        return write_page(self._handle.html(), path)

    def to_pandas(self) -> Any:
        """Convert the time series to a data frame of pandas, which has to be installed.

        Returns:
            A row per interval, indexed by its start in seconds (`t_s`), with the fields of `Interval` as columns:
            ``run.to_pandas()[["p50_ms", "p99_ms"]].plot()``. Those of streams begin with ``stream_`` and ``llm_``;
            histograms are left out.

        Raises:
            ImportError: pandas is not installed.
        """
        return data_frame(self.series)

    def _repr_html_(self) -> str:
        """Return the HTML report for a notebook."""
        return framed(self.html())

    def __str__(self) -> str:
        """Return the text report."""
        return self.report()

    def __repr__(self) -> str:
        """Return model, target and main figures in one line."""
        target = f"{self.target.method} {_weir.without_secrets(self.target.url)}"
        p99 = self.response_ms.p99
        times = "no response times" if p99 is None else f"p99 {p99:.3g} ms"
        return (
            f"<weir.Run {self.model} {target}: {self.requests.total} requests, "
            f"{self.requests.failed} failed, {self.rate_per_s.achieved:.1f}/s, {times}>"
        )

    def __reduce__(self) -> tuple[Callable[[str], "Run"], tuple[str]]:
        """Pickle as JSON."""
        return Run.from_json, (self.to_json(),)


_T = TypeVar("_T")


def _read(kind: type[_T], data: Mapping[str, Any], **private: object) -> _T:
    """Make a dataclass from a JSON object: each field by its type and its name in JSON."""
    hints = get_type_hints(kind)
    public = [f for f in fields(kind) if f.name not in private]  # type: ignore[arg-type]  # dataclasses only
    names = {f.name: f.metadata.get("json", f.name) for f in public}
    # Fields of scenarios are absent without scenarios; the class has their defaults.
    has_default = [f for f in public if f.default is not MISSING or f.default_factory is not MISSING]
    optional = {f.name for f in has_default if names[f.name] not in data}
    values = {name: _value(hints[name], data[key]) for name, key in names.items() if name not in optional}
    return kind(**values, **private)


def _key(kind: Any, name: str) -> int | str:
    """Key of a mapping; of statuses a number where the name is one."""
    if isinstance(kind, UnionType):
        return int(name) if name.isdecimal() else name
    return cast("int | str", kind(name))


def _value(kind: Any, value: Any) -> Any:
    if value is None:
        return None
    if isinstance(kind, UnionType):
        kind = get_args(kind)[0]
    if is_dataclass(kind):
        return _read(kind, value)  # type: ignore[arg-type]  # a class, not an instance
    if get_origin(kind) is tuple:
        return tuple(_value(get_args(kind)[0], item) for item in value)
    if get_origin(kind) is Mapping:
        key, _ = get_args(kind)
        return MappingProxyType({_key(key, name): item for name, item in value.items()})
    return value
