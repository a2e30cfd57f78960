"""Goals of `weir send`."""

from __future__ import annotations

from collections.abc import Iterator

from harness import queues, results, sending, stores, submitting
from harness.results import Section, Value
from harness.sending import GENERATED, IN_FILE, IN_MEMORY, LATE, SATURATED, SEND, UNLIMITED
from harness.verdict import UNKNOWN, Goal, at_least, at_most

SATURATED_S = 95.0
#: Minimum fraction of the rate that the delay bound allows.
SHARE = 0.995
APART = 0.01
RESPONSE_MS, LATE_MS = 500.0, 0.2
JOBS_S, SUBMITS_S, PEERS_X = 45_000, 100_000, 10.0
ONE_US, MANY_US = 10.0, 2.0
IDLE_SHARE, REOPEN_S = 0.01, 1.0
#: Maximum memory per job on disk; a sender with its jobs in memory needs more.
JOB_BYTES = 100


def judge(section: Section) -> Iterator[Goal]:
    """Yield the goals of the section."""
    found = section.median(SATURATED, SEND, results.noted("accepted_per_s"))
    yield at_least(f"{SATURATED}: at least {SATURATED_S:g}/s accepted", found, SATURATED_S, "{:.1f}/s")
    yield _none(section, SATURATED, "429 and 400", "exceeded", "overtaken")
    yield _none(section, GENERATED, "lost or expired job", "lost", "expired", "dead_lettered")
    found = section.median(GENERATED, SEND, results.noted("response_ms", "p99"))
    yield at_most(f"{GENERATED}: response time p99 below {RESPONSE_MS:g} ms", found, RESPONSE_MS, "{:.0f} ms")
    yield _none(section, GENERATED, "429 and 400", "exceeded", "overtaken")
    for setting in sending.SETTINGS:
        yield from _setting(section, setting)
    awaited, threaded = (section.median(of.name, SEND, results.noted("accepted_per_s")) for of in sending.FROM_PYTHON)
    apart = abs(awaited / threaded - 1) if awaited and threaded else None
    yield at_most(f"asyncio and threads within {APART:.0%}", apart, APART, "{:.2%}")
    yield from _unlimited(section)
    for name in (IN_FILE, IN_MEMORY):
        found = section.median(LATE, name, results.noted("lateness_ms", "p99"))
        yield at_most(f"{LATE}, `{name}`: at most {LATE_MS:g} ms late at p99", found, LATE_MS, "{:.2f} ms")
    yield from _kept(section)
    for form, limit in ((submitting.ONE, ONE_US), (submitting.MANY, MANY_US)):
        found = section.median(submitting.SUBMITTED, submitting.SENDER, results.noted("us", form))
        yield at_most(f"{submitting.SUBMITTED}, {form}: at most {limit:g} us of CPU a job", found, limit, "{:.1f} us")


def _none(section: Section, case: str, what: str, *names: str) -> Goal:
    promise = f"{case}: no {what}"
    trials = section.trials(case, SEND)
    if not trials:
        return Goal(promise, "", UNKNOWN)
    counted = [sum(trial.server[name] for trial in trials) for name in names]
    verdict = "reached" if not any(counted) else f"missed by {sum(map(abs, counted))}"
    return Goal(promise, " + ".join(map(str, counted)), verdict)


def _setting(section: Section, setting: sending.Setting) -> Iterator[Goal]:
    yield _none(section, setting.name, "429 and 400", "exceeded", "overtaken")
    if setting.key_per_s is not None:
        least = setting.keys * setting.key_per_s * SHARE
        found = section.median(setting.name, SEND, results.noted("accepted_per_s"))
        yield at_least(f"{setting.name}: at least {least:,.1f}/s, as calculated", found, least, "{:,.1f}/s")


def _unlimited(section: Section) -> Iterator[Goal]:
    rate = results.noted("jobs_per_s")
    found = section.median(UNLIMITED, IN_FILE, rate)
    yield at_least(f"{UNLIMITED}: at least {JOBS_S:,} jobs/s with SQLite", found, JOBS_S, "{:,.0f}/s")
    for peer in queues.PEERS:
        found = section.ratio(UNLIMITED, IN_FILE, peer, rate)
        yield at_least(f"with SQLite at least {PEERS_X:g} x {peer} on Redis", found, PEERS_X, "{:.1f} x")
    found = section.median(stores.STORE, stores.STORE, submits(*stores.SUBMITS[1]))
    yield at_least(f"at least {SUBMITS_S:,} durable submits/s, 16 producers", found, SUBMITS_S, "{:,.0f}/s")


def submits(batch: int, under_way: int) -> Value:
    """Select the rate of durable submits."""
    return results.noted("per_s", stores.SUBMIT.format(batch=batch, under_way=under_way))


def _kept(section: Section) -> Iterator[Goal]:
    found = section.median(stores.IDLE, SEND, results.noted("cpu_share"))
    yield at_most("an empty queue: below 1% of a core", found, IDLE_SHARE, "{:.2%}")
    jobs = section.plan["kept_jobs"]
    found = section.median(stores.KEPT, SEND, results.noted("reopen_s"))
    promise = f"{jobs:,} jobs on disk: the next sender's first request after at most {REOPEN_S:g} s"
    yield at_most(promise, found, REOPEN_S, "{:.2f} s")
    found = section.median(stores.KEPT, SEND, results.memory)
    limit = max(jobs, 1_000_000) * JOB_BYTES / 1e6
    yield at_most(f"{jobs:,} jobs on disk: memory below {limit:.0f} MB", found, limit, "{:.0f} MB")
