"""Page and goals of the section on senders that share a Redis server."""

from __future__ import annotations

from collections.abc import Iterator

from harness import results
from harness.results import Section
from harness.sharing import BOUND_S, DURABILITY, KILLED, LEASE_S, PEERS, SENDERS, SHARED, UNLIMITED, label
from harness.table import Row, number, table
from harness.verdict import UNKNOWN, Goal, at_least, at_most

JOBS_S = 20_000
#: Minimum fraction of the rate of a single sender.
SHARE = 0.95
SEVERAL = max(SENDERS)

METHOD = """\
Jobs are read from a file of lines, saved in Redis, leased, sent to `weir serve httpbin`, responded to, recorded in
Redis, and written to a file of results; the rate covers all of these. For the peers a job is a call of an empty
function, enqueued before the measurement. The service has one core; all other processes, Redis too, may use all cores.
Redis saves nothing on disk for the peers; synced each second (`appendfsync everysec`), it writes all changes to a file.
"""


def write(section: Section) -> Iterator[str]:
    """Yield the parts of the page."""
    yield "# Shared: jobs and keys on a Redis server"
    yield METHOD.strip()
    header = ["", "jobs", "jobs/s", "x Dramatiq", "x taskiq", "CPU us/job", "of Redis", "Redis MB"]
    yield table(header, [_unlimited(section, name) for name in (*DURABILITY, *PEERS)])
    yield (
        "The reference rate-limited API with its five keys, more jobs than the limits allow, Redis synced each second."
        f" Accepted and rejected requests are counted by the service, over {section.plan['setting_s']} s."
    )
    header = ["", "accepted/s", f"x {label(1)}", "429", "400", "lost", "CPU us/job", "of Redis"]
    yield table(header, [_shared(section, label(count)) for count in SENDERS])
    yield (
        f"{SEVERAL} senders; the oldest is killed with `kill -9` at a random time between two heartbeats, and a new one"
        f" is started when others have sent with its keys; the lease is {LEASE_S:g} s. Per key: time from the kill to"
        " the next request of another sender. Jobs in flight at a kill are sent again, and flagged."
    )
    header = ["kills", "keys", "min s", "median s", "max s", "429", "400", "sent twice", "flagged"]
    yield table(header, [_killed(section)])


def _unlimited(section: Section, name: str) -> Row:
    def of(value: results.Value, form: str) -> str:
        return number(section.median(UNLIMITED, name, value), form)

    rate = results.noted("jobs_per_s")
    ours = name in DURABILITY
    beside = [number(section.ratio(UNLIMITED, name, peer, rate), "{:.1f}") if ours else "" for peer in PEERS]
    return [
        name,
        of(lambda trial: float(trial.requests), "{:,.0f}"),
        of(rate, "{:,.0f}"),
        *beside,
        of(results.cpu, "{:.1f}") if ours else "",
        of(results.noted("redis_us"), "{:.1f}") if ours else "",
        of(results.noted("redis_mb"), "{:.0f}") if ours else "",
    ]


def _shared(section: Section, name: str) -> Row:
    def of(what: str, form: str = "{:.0f}") -> str:
        return number(section.median(SHARED, name, results.noted(what)), form)

    ratio = section.ratio(SHARED, name, label(1), results.noted("accepted_per_s"))
    counts = map(of, ("exceeded", "overtaken", "lost", "cpu_us", "redis_us"))
    return [name, of("accepted_per_s", "{:.1f}"), number(ratio, "{:.3f}"), *counts]


def _killed(section: Section) -> Row:
    def of(*path: str, form: str = "{:.0f}") -> str:
        return number(section.median(KILLED, label(SEVERAL), results.noted(*path)), form)

    took = [of("took_s", which, form="{:.2f}") for which in ("min", "median", "max")]
    return [of("kills"), of("keys"), *took, *map(of, ("exceeded", "overtaken", "twice", "flagged"))]


def judge(section: Section) -> Iterator[Goal]:
    """Yield the goals of the section."""
    for name in DURABILITY:
        found = section.median(UNLIMITED, name, results.noted("jobs_per_s"))
        yield at_least(f"{UNLIMITED}, `{name}`: at least {JOBS_S:,} jobs/s", found, JOBS_S, "{:,.0f}/s")
    for count in SENDERS:
        yield _none(section, SHARED, label(count))
    found = section.ratio(SHARED, label(SEVERAL), label(1), results.noted("accepted_per_s"))
    promise = f"{SHARED}: {label(SEVERAL)} have at least {SHARE:.0%} of the rate of {label(1)}"
    yield at_least(promise, found, SHARE, "{:.1%}")
    yield _none(section, KILLED, label(SEVERAL))
    found = section.median(KILLED, label(SEVERAL), results.noted("took_s", "max"))
    promise = f"{KILLED}: another sends by its keys within {BOUND_S:.2f} s (lease, window, bound)"
    yield at_most(promise, found, BOUND_S, "{:.2f} s at most")


def _none(section: Section, case: str, name: str) -> Goal:
    promise = f"{case}, {name}: no 429 and no 400"
    trials = section.trials(case, name)
    if not trials:
        return Goal(promise, "", UNKNOWN)
    counted = [sum(trial.server[what] for trial in trials) for what in ("exceeded", "overtaken")]
    verdict = "reached" if not any(counted) else f"missed by {sum(counted)}"
    return Goal(promise, " + ".join(map(str, counted)), verdict)
