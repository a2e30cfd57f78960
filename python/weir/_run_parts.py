"""Parts of a run, typed: the objects of `docs/schema/run.schema.json` below the run itself."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from weir._run_series import StreamPoint, WebSocketPoint

__all__ = [
    "Agent",
    "Bytes",
    "Connections",
    "Interval",
    "Manifest",
    "Objective",
    "Percentiles",
    "Rate",
    "Requests",
    "Responses",
    "Target",
    "Trust",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Target of the requests.

    Attributes:
        url: URL as given, without user and password.
        method: Request method.
        host: Host of the target.
        port: Port of the target.
        path: Path and query.
        server: `Server` header of the first response.
        body_length: Body length of the first response, in bytes.
        other_lengths: Number of responses with another body length than the first.
        tls: TLS version and cipher, with TLS.
        http: Version of HTTP, such as ``"HTTP/2"``; None if no connection was made.
        failure_details: Message of the first failure of each kind.
    """

    url: str
    method: str
    host: str
    port: int
    path: str
    server: str | None
    body_length: int | None
    other_lengths: int
    tls: str | None
    http: str | None = None
    failure_details: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Requests:
    """Counts of requests by outcome; `total` = `ok` + `failed`.

    Attributes:
        total: Requests with an intended start in the window that have ended: sent, or dropped.
        ok: Whole responses with a status below 400.
        failed: All others, dropped ones included.
        dropped: Of the failed ones: never sent, since no connection was free in time.
        waited: Sent late because all connections were busy.
        unfinished: Cut off by an interrupt; not in `total`.
    """

    total: int
    ok: int
    failed: int
    dropped: int
    waited: int
    unfinished: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """Requests per second over the window.

    Attributes:
        offered: Intended starts; in the closed loop the same as `achieved`.
        achieved: Responses.
    """

    offered: float
    achieved: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Percentiles:
    """Distribution of times, in milliseconds; each is None if nothing was measured.

    Attributes:
        mean: Arithmetic mean.
        sd: Standard deviation of the population.
        min: Minimum.
        p50: 50th percentile, the median.
        p75: 75th percentile.
        p90: 90th percentile.
        p95: 95th percentile.
        p99: 99th percentile.
        p999: 99.9th percentile.
        max: Maximum.
    """

    mean: float | None
    sd: float | None
    min: float | None
    p50: float | None
    p75: float | None
    p90: float | None
    p95: float | None
    p99: float | None
    p999: float | None
    max: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Responses:
    """Times of all responses, whatever their status, as ab and wrk count them.

    Attributes:
        response_ms: Time from the intended start to the whole response, in milliseconds.
        service_ms: Time from the send to the whole response, in milliseconds.
        first_byte_ms: Time from the send to the first byte of the response, in milliseconds.
        histogram: Histogram of the response times, in the format of the run's `histogram`.
    """

    response_ms: Percentiles
    service_ms: Percentiles
    first_byte_ms: Percentiles
    histogram: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bytes:
    """Bytes transferred for the requests of the window.

    Attributes:
        read: Bytes read, heads and framing included (``in`` in JSON, a keyword of Python).
        written: Bytes written, heads included (``out`` in JSON).
        body_in: Bytes read, bodies only.
    """

    read: int = field(metadata={"json": "in"})
    written: int = field(metadata={"json": "out"})
    body_in: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Connections:
    """Connections of the whole run.

    Attributes:
        max: Maximum number of connections (or users).
        opened: Number of connections opened.
        max_backlog: Maximum number of requests that waited for a connection at once.
    """

    max: int
    opened: int
    max_backlog: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Http2:
    """HTTP/2 of a run's connections, warm-up included.

    Attributes:
        streams: Maximum number of streams of a connection that was asked for.
        permitted_streams: Lowest maximum that the service permitted; None if it has no limit.
        settings_ms: Time from the transport (TCP, or TLS) to the service's settings; part of the time to connect.
        goaways: Number of connections that the service ended by GOAWAY.
        resent: Requests that were sent again on another connection, since the service had not processed them. Each
            counts once, from its intended start to its end.
        errors: Streams that ended without a whole response, by error code.
    """

    streams: int
    permitted_streams: int | None
    settings_ms: Percentiles
    goaways: int
    resent: int
    errors: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trust:
    """Validity of a run.

    Attributes:
        ok: Whether the run is trusted.
        reasons: Reasons not to trust it, a sentence each.
    """

    ok: bool
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    """Objective and its outcome.

    Attributes:
        objective: Objective as given, e.g. `p99<200ms`.
        ok: Whether it was met.
        measured: Measured figure as text, with clock and unit.
    """

    objective: str
    ok: bool
    measured: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """Figures of one agent of a run.

    Attributes:
        node: Node of the agent.
        threads: Number of generator threads; 0 without any work.
        requests: Requests that have ended: sent, or dropped.
        ok: Of these, whole responses with a status below 400.
        rate_per_s: Responses per second.
        response_ms: Time from the intended start to the whole response, over its successes, in milliseconds.
        lateness_ms: Lateness of the agent, in milliseconds.
        cpu_us_per_request: User and system time of the agent per request, in microseconds; None without requests.
        cpu_utilization: CPU utilization of its busiest thread, in [0, 1].
        start_offset_ms: Offset of its start from the common start, in milliseconds.
        clock_error_ms: Maximum error of its clock, in milliseconds.
        lost: Reason why it was lost during the run, if it was.
    """

    node: str
    threads: int
    requests: int
    ok: int
    rate_per_s: float
    response_ms: Percentiles
    lateness_ms: Percentiles
    cpu_us_per_request: float | None
    cpu_utilization: float
    start_offset_ms: float
    clock_error_ms: float
    lost: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """Interval of the time series: a second, or several in a run of over 20 minutes.

    Attributes:
        t_s: Start of the interval, in seconds since the start of the run.
        width_s: Length of the interval, in seconds.
        ok: Successes in the interval.
        failed: Failed requests in the interval.
        responses: Whole responses in the interval, whatever their status.
        bytes_in: Bytes read in the interval.
        in_flight: Requests in flight at the end of the interval.
        max_in_flight: Maximum of the requests in flight, of the threads together.
        backlog: Arrivals waiting for a connection at the end of the interval.
        p50_ms: Median response time of the successes, in milliseconds; None without any.
        p99_ms: 99th percentile of these times, in milliseconds.
        max_ms: Maximum of these times, in milliseconds.
        histogram: Histogram of these times: HdrHistogram V2 at two digits, in nanoseconds, base64.
        failed_p50_ms: Median time of the failures: until the response had arrived, or until it was clear that none
            would, in milliseconds.
        failed_p99_ms: 99th percentile of these times, in milliseconds.
        failed_max_ms: Maximum of these times, in milliseconds.
        failed_histogram: Histogram of these times, in the format of `histogram`; empty without any.
        streams: Streamed responses; None if responses are not read as streams.
        websocket: Connections of WebSocket; None if it is not spoken.
    """

    t_s: float
    width_s: float
    ok: int
    failed: int
    responses: int
    bytes_in: int
    in_flight: int
    max_in_flight: int
    backlog: int
    p50_ms: float | None
    p99_ms: float | None
    max_ms: float | None
    histogram: str = field(repr=False)
    failed_p50_ms: float | None
    failed_p99_ms: float | None
    failed_max_ms: float | None
    failed_histogram: str = field(repr=False)
    streams: StreamPoint | None = None
    websocket: WebSocketPoint | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """Command, seed, time and machine of a run.

    Attributes:
        command: Command or call of the run, without passwords.
        seed: Seed of arrivals and bodies.
        started_unix_s: Start, in seconds since 1970.
        threads: Number of generator threads.
        hostname: Host name.
        os: Operating system and version.
        cpu: Processor model.
        cores: Number of cores available to the generator.
        memory_mib: Memory of the machine, in MiB.
    """

    command: tuple[str, ...]
    seed: int
    started_unix_s: float
    threads: int
    hostname: str
    os: str
    cpu: str
    cores: int
    memory_mib: int
