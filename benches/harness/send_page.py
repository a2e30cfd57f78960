"""Page of the section on `weir send`."""

from __future__ import annotations

from collections.abc import Iterator

from harness import queues, results, sending, stores, submitting
from harness.results import Section
from harness.send_goals import submits
from harness.sending import (
    GENERATED,
    IN_FILE,
    IN_MEMORY,
    LATE,
    LATE_KEYS,
    LIMIT,
    SATURATED,
    SEND,
    TTL,
    UNLIMITED,
    WARMUP_S,
    WAY_MS,
    Setting,
)
from harness.table import Row, number, table

METHOD = f"""\
`weir serve ratelimit` has its own core, `weir send` the other. Accepted and rejected requests are counted by the
service. Each key allows {LIMIT} requests per second, one-way delays are 0 to {WAY_MS} ms, ten 429s block a key, each
response closes its connection, and nonces have to arrive in order: this is the reference rate-limited API. The others
differ from it as named. There are more jobs than the limits allow; the count begins {WARMUP_S} s after the first
accepted request, when windows that were empty are full. Jobs are in a SQLite file, results go to another file; from
Python, jobs are in memory and results are counted.

*Calculated* is the rate that the delay bound J allows if every request takes the maximum delay, for a limit of N in T:
N / (T + J + 1 ms) per key, and at most 1 / J, since a request waits until the previous one has surely arrived.
"""
PEERS_METHOD = """\
A job is a request to `weir serve httpbin`: read from a file of lines, saved in the store, sent, responded to, recorded,
and written to a file of results; the rate covers all of these. For the peers a job is a call of an empty function,
enqueued before the measurement, with the result discarded: their rate is of their workers alone. Each has both cores;
Redis saves nothing on disk, and the SQLite file is synced before a job counts as accepted.
"""


def write(section: Section) -> Iterator[str]:
    """Yield the parts of the page."""
    yield "# Send: throughput with and without rate limits"
    yield METHOD.strip()
    header = ["API", "keys", "s", "accepted/s", "calculated", "429", "400", "CPU us/job"]
    yield table(header, [_row(section, setting) for setting in (sending.REFERENCE, *sending.SETTINGS)])
    yield (
        f"The reference generator makes a request and sleeps 0 to 21 ms; the TTL of a job is {TTL}."
        " Response times count from the generator's request."
    )
    yield _generated(section)
    yield "## No limit"
    yield PEERS_METHOD.strip()
    header = ["", "version", "jobs/s", f"`{IN_FILE}` is x", "enqueued/s", "CPU us/job", "peak MB"]
    yield table(header, [_queue(section, name) for name in (IN_FILE, IN_MEMORY, *queues.PEERS)])
    yield "## Store, and lateness of sends"
    yield table(["", ""], _figures(section))
    trials = section.trials(submitting.SUBMITTED, submitting.SENDER)
    if trials:
        yield "## Jobs from Python"
        yield "CPU time of the submitting thread per job, with jobs in memory; tickets are kept until the end."
        costs = trials[0].server["us"].items()
        yield table(["`enqueue` and `enqueue_many`", "us"], [[form, f"{us:.2f}"] for form, us in costs])


def _row(section: Section, setting: Setting) -> Row:
    def of(*path: str, form: str = "{:.0f}") -> str:
        return number(section.median(setting.name, SEND, results.noted(*path)), form)

    least = None if setting.key_per_s is None else setting.keys * setting.key_per_s
    seconds = section.plan["send_s" if setting.name == SATURATED else "setting_s"]
    return [
        setting.name,
        str(setting.keys),
        str(seconds),
        of("accepted_per_s", form="{:,.1f}"),
        number(least, "{:,.1f}"),
        of("exceeded"),
        of("overtaken"),
        number(section.median(setting.name, SEND, results.cpu), "{:,.0f}"),
    ]


def _generated(section: Section) -> str:
    def of(*path: str, form: str = "{:.0f}") -> str:
        return number(section.median(GENERATED, SEND, results.noted(*path)), form)

    header = ["made", "per s", "lost", "expired", "429", "400", "response p50 ms", "p99 ms", "max ms"]
    row = [of("made"), of("made_per_s", form="{:.1f}"), *map(of, ("lost", "expired", "exceeded", "overtaken"))]
    return table(header, [[*row, *(of("response_ms", name) for name in ("p50", "p99", "max"))]])


def _queue(section: Section, name: str) -> Row:
    trials = section.trials(UNLIMITED, name)
    rate = results.noted("jobs_per_s")
    ours = name in (IN_FILE, IN_MEMORY)
    version = section.versions.get("weir", "-") if ours else (trials[0].report["version"] if trials else "-")
    return [
        name,
        version,
        number(section.median(UNLIMITED, name, rate), "{:,.0f}"),
        "" if name == IN_FILE else number(section.ratio(UNLIMITED, IN_FILE, name, rate), "{:.1f}"),
        "" if ours else number(section.median(UNLIMITED, name, results.noted("enqueued_per_s")), "{:,.0f}"),
        number(section.median(UNLIMITED, name, results.cpu), "{:.1f}") if ours else "",
        number(section.median(UNLIMITED, name, results.memory), "{:.0f}") if ours else "",
    ]


def _figures(section: Section) -> Iterator[Row]:
    for batch, under_way in stores.SUBMITS:
        found = section.median(stores.STORE, stores.STORE, submits(batch, under_way))
        what = stores.SUBMIT.format(batch=batch, under_way=under_way)
        yield [f"durable submits per second: {what}", number(found, "{:,.0f}")]
    for name in (IN_FILE, IN_MEMORY):
        late = [section.median(LATE, name, results.noted("lateness_ms", at)) for at in ("p50", "p99")]
        rate = section.median(LATE, name, results.noted("sends_per_s"))
        what = f"`{name}`, {LATE_KEYS} keys of 1 per 10 ms, {number(rate, '{:,.0f}')} sends/s: late by p50, p99"
        yield [what, ", ".join(number(value, "{:.2f} ms") for value in late)]
    jobs = section.plan["kept_jobs"]
    for what, name, form in (
        ("peak memory while they are submitted and wait", "peak_mb", "{:.0f} MB"),
        ("from the start of the next sender to its first request", "reopen_s", "{:.2f} s"),
    ):
        yield [f"{jobs:,} jobs on disk: {what}", number(section.median(stores.KEPT, SEND, results.noted(name)), form)]
    found = section.median(stores.IDLE, SEND, results.noted("cpu_share"))
    yield [f"an empty queue for {stores.IDLE_S} s: fraction of a core", number(found, "{:.2%}")]
