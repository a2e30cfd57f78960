"""Scenarios of a run, typed: iterations, scenarios and steps of `docs/schema/run.schema.json`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from weir._run_parts import Percentiles, Rate

__all__ = [
    "Change",
    "Changes",
    "CheckResult",
    "EndReason",
    "FailureSample",
    "Iterations",
    "ScenarioResult",
    "StepInterval",
    "StepResult",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Iterations:
    """Iterations of scenarios; `total` = `ok` + `failed`.

    Attributes:
        total: Iterations that have ended, or were never started.
        ok: Iterations in which no step failed.
        failed: All others, dropped ones included.
        dropped: Of the failed ones: never started, since no user was free in time.
        unfinished: Cut off by the end of the run; not in `total`.
        rate_per_s: Iterations per second.
        time_ms: Time from the intended start to the end of an iteration, think times included, in milliseconds.
        histogram: Histogram of these times, in the format of `Run.histogram`.
    """

    total: int
    ok: int
    failed: int
    dropped: int
    unfinished: int
    rate_per_s: Rate
    time_ms: Percentiles
    histogram: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Change of a load while it ran.

    Attributes:
        t_s: Time from which it holds, in seconds since the start of the run.
        kind: What was changed.
        level: Requests per second of an open loop, or users of a closed one, from then on.
    """

    t_s: float
    kind: Literal["rate", "users", "pause", "resume", "stop"]
    level: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """Changes of a load while it ran, and the load that they have made.

    Attributes:
        stages: `stages` with which a load is the same without changes.
        made: Changes, in order of time.
    """

    stages: str
    made: tuple[Change, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EndReason:
    """Reason why a run ended before its time, other than an interrupt; the fields of the others are None.

    Attributes:
        data_rows: File of data whose rows were used up.
        script_stop: Script that stopped all threads.
        script_error: Error of the script that ended the run.
    """

    data_rows: str | None
    script_stop: str | None
    script_error: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioResult:
    """Scenario of a run.

    Attributes:
        name: Name: that of its file, without the ending.
        iterations: Iterations that have ended. Iterations that were never started belong to no scenario.
        ok: Iterations in which no step failed.
        failed: Iterations with a failed step.
        unfinished: Cut off by the end of the run; not in `iterations`.
        rate_per_s: Iterations per second.
        time_ms: Time from the intended start to the end of an iteration, think times included, in milliseconds.
    """

    name: str
    iterations: int
    ok: int
    failed: int
    unfinished: int
    rate_per_s: float
    time_ms: Percentiles


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """Check of a step.

    Attributes:
        text: Check, as it is written.
        passed: Evaluations that hold.
        failed: Evaluations that do not.
    """

    text: str
    passed: int
    failed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureSample:
    """Failure of a step, for a person.

    Attributes:
        reason: What was wrong.
        response: Beginning of the response, with secrets left out; empty without one.
    """

    reason: str
    response: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StepInterval:
    """Interval of a step.

    Attributes:
        t_s: Start of the interval, in seconds since the start of the run.
        width_s: Length of the interval, in seconds.
        ok: Successes that ended in the interval.
        failed: Failed requests that ended in the interval.
        p50_ms: Median response time of the successes, in milliseconds; None without any.
        p99_ms: 99th percentile of these times, in milliseconds.
    """

    t_s: float
    width_s: float
    ok: int
    failed: int
    p50_ms: float | None
    p99_ms: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StepResult:
    """Step of a scenario; `requests` = `ok` + `failed`.

    Attributes:
        name: Name, unique in the run: in a mix it begins with that of the scenario.
        scenario: Name of its scenario.
        requests: Requests that have ended; redirects and retries are requests of their step.
        ok: Responses that the step expects.
        failed: All others.
        redirects: Requests that followed a redirect.
        retries: Requests that were followed by a retry.
        unsent: Requests that were never sent, since a variable had no value or an invalid one; not in `requests`.
        bytes_in: Bytes read, heads and framing included.
        bytes_out: Bytes written, heads included.
        rate_per_s: Responses per second.
        response_ms: Time from the intended start to the whole response, over successes, in milliseconds.
        service_ms: Time from the send to the whole response, over successes, in milliseconds.
        failed_ms: Time from the intended start to the end of failed requests, in milliseconds.
        status: Number of responses by status: numbers of HTTP, names of gRPC.
        failures: Failed requests by kind; their sum is `failed`.
        checks: Checks, in order.
        samples: First failures.
        lateness_ms: Lateness of the generator itself, over whole responses, in milliseconds.
        untrusted: Whether weir's own lateness distorts percentiles of `response_ms`.
        series: Time series, warm-up included; the more steps, the wider the intervals.
        histogram: Histogram of `response_ms`, in the format of `Run.histogram`.
        service_histogram: Histogram of `service_ms`, in the same format.
    """

    name: str
    scenario: str
    requests: int
    ok: int
    failed: int
    redirects: int
    retries: int
    unsent: int
    bytes_in: int
    bytes_out: int
    rate_per_s: float
    response_ms: Percentiles
    service_ms: Percentiles
    failed_ms: Percentiles
    status: Mapping[int | str, int]
    failures: Mapping[str, int]
    checks: tuple[CheckResult, ...]
    samples: tuple[FailureSample, ...]
    lateness_ms: Percentiles
    untrusted: bool
    series: tuple[StepInterval, ...]
    histogram: str
    service_histogram: str
