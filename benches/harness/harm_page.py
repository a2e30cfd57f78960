"""Page and goals of the section on good calls lost by protection."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from harness.harm import (
    BESIDE,
    BURNER,
    CONNECTIONS,
    DIRECT,
    GATE,
    HOLDERS,
    MIXED,
    PEERS,
    QUIET,
    SHEDDING,
    SLOW_LIMIT,
    SLOW_STREAMS,
    STOPS,
    STREAMS,
    UNLIMITED,
    UPLOAD_HOSTS,
    UPLOADS,
    closed_case,
)
from harness.proxies import CADDY_POLICED, ENVOY_GUARDED, ENVOY_PINNED
from harness.results import Section
from harness.table import Row, table
from harness.trial import Trial
from harness.verdict import UNKNOWN, Goal, at_most

#: Cause of good calls that are lost beside streams that do not read.
BURST = (
    f"{SLOW_STREAMS} streams at once are more than the limit of {SLOW_LIMIT} calls, until they are found not to read;"
    " floor: the calls of that moment"
)
#: Maximum fraction of the good calls beside short deadlines.
LOST = 0.01

METHOD = f"""\
Nothing here is overloaded, so no call should be lost. `weir gate` has its defaults and its own core; the upstream
shares the other core with the generator. Rejected: 503 and 429. Failed: any other response that is not a success, or no
response.

In the closed loops, `wrk` with {CONNECTIONS} connections calls nginx (one worker, 38 bytes). Good calls come at Poisson
times from `weir load`, with a deadline of 1 s, and only they are counted; the deadlines of the other callers, 20 to
60 ms, are in a header. Broken uploads have bodies that break off or have invalid framing, and go to {UPLOAD_HOSTS}
hosts with `breaker = {{}}`; /metrics is read ten times per second for ejected hosts and for an open breaker. Streams
that do not read are of one connection, whose windows are zero, in front of `max_in_flight = 200` and with a deadline of
1 h; deadlines of 1 ms are at an upstream that responds after 30 ms.

Peers have what their documentation has against an overloaded or failing upstream ([why
so](../design/gate-peers.md)): `{ENVOY_GUARDED}` its example of that filter, outlier detection, a timeout of 1 s and the
deadlines of callers; `{ENVOY_PINNED}` the same without `min_concurrency_limit`, as is the default: its limit falls to 3
while it measures the minimum latency; `{CADDY_POLICED}` retries, health checks and timeouts.
"""


def write(section: Section) -> Iterator[str]:
    """Yield the parts of the page."""
    yield "# Harm: good calls lost by protection without overload"
    yield METHOD.strip()
    plan = section.plan
    rounds = "1 round" if plan["harm_rounds"] == 1 else f"{plan['harm_rounds']} rounds"
    yield f"{rounds} of {plan['harm_s']} s; lost: in all rounds, and in brackets in the worst one."
    header = ["disturbance", "gateway", "calls", "rejected", "failed", "lost"]
    yield "## Pauses of the gate"
    cases = [closed_case(name) for name in (QUIET, BURNER, *STOPS)] + _long(section)
    yield table(header, _rows(section, cases, (DIRECT, *PEERS, SHEDDING, GATE)))
    yield "## Short deadlines of others"
    yield table(header, _rows(section, (MIXED,), (UNLIMITED, *PEERS, SHEDDING, GATE)))
    yield "## Slots held for nothing"
    yield table(header, _rows(section, HOLDERS, (*PEERS, SHEDDING, GATE)))
    yield "## Broken uploads"
    rows = []
    for case in UPLOADS:
        for name in (*BESIDE[case], SHEDDING, GATE):
            seen = [_seen(section.trials(case, name), what) for what in ("broken", "ejected", "opened")]
            rows += [[*row, *seen] for row in _rows(section, (case,), (name,))]
    yield table([*header, "uploads", "readings with a host ejected", "with the breaker open"], rows)


def judge(section: Section) -> Iterator[Goal]:
    """Yield the goals of the section."""
    for case in [closed_case(name) for name in (QUIET, BURNER, *STOPS)] + _long(section):
        yield _none(section, case, "call lost", "rejected", "failed")
    trials = section.trials(MIXED, GATE)
    promise = f"{MIXED}: at most {LOST:.0%} of the good calls lost"
    yield at_most(promise, _lost(trials) if trials else None, LOST, "{:.2%}")
    for case in HOLDERS:
        goal = _none(section, case, "good call lost", "rejected", "failed")
        yield goal.because(BURST if case == STREAMS else "")
    for case in UPLOADS:
        yield _none(section, case, "good call lost", "rejected", "failed")
        yield _none(section, case, "host ejected, no breaker open", "ejected", "opened")
    shedding = [trial for case in section.cases() for trial in section.trials(case, SHEDDING)]
    lost = sum(_sum(shedding, what) for what in ("rejected", "failed"))
    promise = "all cases, with `shed_culprits`: no good call lost"
    yield (
        Goal(promise, str(lost), f"missed by {lost}" if lost else "reached") if shedding else Goal(promise, "", UNKNOWN)
    )


def _long(section: Section) -> list[str]:
    """Return the cases of the long runs."""
    minutes = section.plan.get("harm_min") or 0
    return [closed_case(name, minutes) for name in (QUIET, BURNER)] if minutes else []


def _none(section: Section, case: str, what: str, *names: str) -> Goal:
    promise = f"{case}: no {what}"
    trials = section.trials(case, GATE)
    if not trials:
        return Goal(promise, "", UNKNOWN)
    counts = [_sum(trials, name) for name in names]
    return Goal(promise, " + ".join(map(str, counts)), f"missed by {sum(counts)}" if any(counts) else "reached")


def _rows(section: Section, cases: Iterable[str], names: tuple[str, ...]) -> Iterator[Row]:
    for case in cases:
        for name in dict.fromkeys(names):
            if trials := section.trials(case, name):
                counts = [f"{_sum(trials, what):,}" for what in ("calls", "rejected", "failed")]
                lost = f"{_lost(trials):.3%} ({max(_lost([trial]) for trial in trials):.3%})"
                yield [case, section.marked(case, name), *counts, lost]


def _seen(trials: list[Trial], what: str) -> str:
    return str(_sum(trials, what)) if all(what in trial.server for trial in trials) else "-"


def _sum(trials: list[Trial], what: str) -> int:
    return sum(int(trial.server[what]) for trial in trials)


def _lost(trials: list[Trial]) -> float:
    return (_sum(trials, "rejected") + _sum(trials, "failed")) / max(1, _sum(trials, "calls"))
