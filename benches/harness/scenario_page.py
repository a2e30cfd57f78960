"""Page and goals of the section on scenarios."""

from __future__ import annotations

from collections.abc import Iterator

from harness import results, scenario
from harness.cost_columns import costs, cpu
from harness.results import Section
from harness.table import Row, number, table
from harness.trial import Trial
from harness.verdict import Goal, at_most

MAX_STEP_US = 9.0
MAX_IDLE_KB = 6.0
MAX_BASE_MB = 30.0
#: Difference of two lateness percentiles below which they are the same, in ms.
SAME_LATENESS_MS = 0.05


def write(section: Section) -> Iterator[str]:
    """Yield the parts of the page."""
    yield "# Scenarios: CPU cost of a step"
    yield (
        "`benches/peers/scenario`: log in with a POST, take the token from 1 KB of JSON, read a list with that token,"
        " take an id from it, order it with a POST and check the response."
        f" {scenario.USERS} users without think time on one core, nginx on the other;"
        f" {section.plan['scenario_s']} s per run, rounds: {section.plan['pairs']}, for other tools"
        f" {section.plan['slow_rounds']}. CPU time is of the whole process with its start and its children."
    )
    order = sorted(section.contenders(scenario.STEPS), key=lambda name: cpu(section, scenario.STEPS, name) or 0.0)
    header = ["generator", "requests/s", "CPU us/request", "user", "system", "x weir", "peak MB", "failed"]
    yield table(header, [_step(section, name) for name in order])
    yield "Gatling is left out: its scenarios are classes, which a build tool has to compile."
    yield "## One step and the plain loop"
    yield (
        f"The same GET, response of 38 bytes, {scenario.USERS} connections: as a URL, and as a scenario of one step"
        " that checks the status."
    )
    header = ["generator", "requests/s", "CPU us/request", "user", "system", "x plain loop"]
    yield table(header, [_loop(section, name) for name in (scenario.PLAIN, scenario.ONE)])
    yield "## Open loop"
    yield (
        f"{scenario.RATE:,} iterations/s for {section.plan['open_s']} s; `shop.hurl` sends three requests in each,"
        f" as many as `{scenario.PLAIN_THREE}`."
        " Lateness is weir's own delay of a request, as weir reports it."
    )
    header = ["generator", "requests/s", "lateness p99 ms", "p99 ms", "CPU us/request"]
    yield table(header, [_open(section, name) for name in section.contenders(scenario.OPEN)])
    yield "## Idle users"
    yield "Users that have sent their first request and think for an hour, each with its connection and variables."
    yield idle_table(section, scenario.IDLE)


def _step(section: Section, name: str) -> Row:
    case = scenario.STEPS
    return [
        *costs(section, case, name),
        number(section.ratio(case, name, scenario.THREE, results.cpu), "{:.2f}"),
        number(section.median(case, name, results.memory), "{:.1f}"),
        number(section.median(case, name, results.said("failed")), "{:.0f}"),
    ]


def _loop(section: Section, name: str) -> Row:
    ratio = section.ratio(scenario.LOOP, name, scenario.PLAIN, results.cpu)
    return [*costs(section, scenario.LOOP, name), number(ratio, "{:.3f}")]


def _open(section: Section, name: str) -> Row:
    case = scenario.OPEN
    return [
        section.marked(case, name),
        number(section.median(case, name, results.rate), "{:,.0f}"),
        number(_late(section, name), "{:.3f}"),
        number(section.median(case, name, results.percentile("p99")), "{:.3f}"),
        number(cpu(section, case, name), "{:.2f}"),
    ]


def idle_trials(section: Section, case: str) -> list[Trial]:
    """Return the runs with idle users, few first."""
    return [trial for name in section.contenders(case) for trial in section.trials(case, name)]


def idle_table(section: Section, case: str) -> str:
    """Return the table of memory."""
    return table(
        ["generator", "peak MB", "requests", "failed"], [_idle(section, t) for t in idle_trials(section, case)]
    )


def _idle(section: Section, trial: Trial) -> Row:
    failed = trial.report.get("failed")
    shown = section.marked(trial.case, trial.contender)
    return [shown, f"{trial.max_rss_mb:.1f}", f"{trial.requests:,}", "-" if failed is None else str(failed)]


def _late(section: Section, name: str) -> float | None:
    return section.median(scenario.OPEN, name, results.said("lateness_p99_ms"))


def judge(section: Section) -> Iterator[Goal]:
    """Yield the goals of the section."""
    found = cpu(section, scenario.STEPS, scenario.THREE)
    yield at_most(f"three steps: at most {MAX_STEP_US:.0f} us CPU per request", found, MAX_STEP_US, "{:.2f} us")
    found = section.ratio(scenario.LOOP, scenario.ONE, scenario.PLAIN, results.cpu)
    yield at_most("one step: CPU per request at most 1.10 x the plain loop", found, 1.10, "{:.3f} x")
    for name, plain in ((scenario.ONE, scenario.PLAIN), (scenario.THREE, scenario.PLAIN_THREE)):
        late = section.difference(scenario.OPEN, name, plain, results.said("lateness_p99_ms"))
        promise = f"{scenario.OPEN}, `{name}`: lateness at p99 at most {SAME_LATENESS_MS:g} ms above that of `{plain}`"
        yield at_most(promise, late, SAME_LATENESS_MS, "{:+.3f} ms")
    yield from _memory(idle_trials(section, scenario.IDLE))


def _memory(trials: list[Trial]) -> Iterator[Goal]:
    few, many = (trials[0], trials[-1]) if len(trials) > 1 else (None, None)
    users = many.connections or 0 if many else 0
    per_user = None
    if few and many and many.connections and few.connections:
        per_user = (many.max_rss_mb - few.max_rss_mb) * 1024 / (many.connections - few.connections)
    yield at_most(f"an idle user: at most {MAX_IDLE_KB:.0f} KB", per_user, MAX_IDLE_KB, "{:.2f} KB")
    base = few.max_rss_mb if few else None
    yield at_most(f"{scenario.USERS} idle users: at most {MAX_BASE_MB:.0f} MB", base, MAX_BASE_MB, "{:.1f} MB")
    limit = MAX_BASE_MB + users * MAX_IDLE_KB / 1024
    peak = many.max_rss_mb if many else None
    yield at_most(f"{users:,} idle users: at most {limit:.0f} MB", peak, limit, "{:.1f} MB")
