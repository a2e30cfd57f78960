"""Page and goals of the section on scripts."""

from __future__ import annotations

from collections.abc import Iterator

from harness import results, scripts
from harness.cost_columns import costs
from harness.results import Section
from harness.scenario import STEPS, USERS
from harness.scenario_page import idle_table, idle_trials
from harness.table import Row, number, table
from harness.verdict import Goal, at_least, at_most

MAX_LUA_US = 9.0
#: Maximum CPU time of a request, in us, by file in Python.
MAX_PYTHON_US = {scripts.TASK: 15.0, scripts.LOCUSTFILE: 20.0}
#: Minimum requests per CPU second, as a multiple of Locust's.
MIN_TIMES_LOCUST = {scripts.FAST_USER: 5.0, scripts.HTTP_USER: 10.0}
#: The same for the file of k6, and the maximum memory of a user of it.
MAX_JAVASCRIPT_US, MAX_USER_KB = 30.0, 250.0
MAX_LATE_MS = 1.0
MAX_IDLE_MB = 100.0


def write(section: Section) -> Iterator[str]:
    """Yield the parts of the page."""
    yield "# Scripts: CPU cost of a request in Lua, Python and JavaScript"
    yield (
        "Generator on one core, nginx on the other; rounds: "
        f"{section.plan['pairs']}, for other tools in Python and JavaScript {section.plan['slow_rounds']}. CPU time is"
        " of the whole process with its start. Quote the ratios: the machine drifts."
    )
    yield "## Lua"
    yield (
        "`benches/peers/scripts`, the same files for both programs: `counter.lua` makes each request with a path and a"
        " header of its own by `wrk.format`; `response.lua` sends one request and looks at status, headers and body of"
        f" each response. Closed loop, {scripts.CONNECTIONS} connections, one thread, response of 38 bytes;"
        f" {section.plan['closed_s']} s per run."
    )
    for case, file in scripts.CASES.items():
        yield f"### {case[0].upper()}{case[1:]}" + (f" (`{file}`)" if file else "")
        yield _table(section, case, scripts.WRK, [scripts.WRK, scripts.WEIR])
    yield "## Python and JavaScript"
    yield (
        "The three steps of [scenarios](scenario.md): log in, read the items with the token, order one of them and"
        f" check the response. {USERS} users without think time, one process, {section.plan['scenario_s']} s"
        " per run. `shop.py` is an async task of weir; `locustfile.py` is the same file for Locust (FastHttpUser) and"
        " for weir, `http_locustfile.py` the same with HttpUser; `k6.js` is the same file for k6 and for weir."
    )
    every = section.contenders(STEPS)
    order = sorted(every, key=lambda name: section.median(STEPS, name, results.cpu) or 0.0)
    yield _table(section, STEPS, scripts.TASK, order)
    yield "### Open loop"
    yield (
        f"`shop.py` at {scripts.RATE // 3:,} iterations/s of three requests for {section.plan['open_s']} s. Lateness is"
        " weir's own delay of a request, with the script's."
    )
    case = scripts.OPEN
    header = ["generator", "requests/s", "CPU us/request", "user", "system", "lateness p99 ms"]
    yield table(header, [[*costs(section, case, scripts.TASK), number(_late(section), "{:.3f}")]])
    yield "### Idle users"
    yield "Users that have sent their first request and think for an hour, each with its connection and session."
    yield idle_table(section, scripts.IDLE)
    yield "Users of a script of k6 (`idle.js`), each with an interpreter and a connection of its own."
    yield idle_table(section, scripts.IDLE_JAVASCRIPT)


def _table(section: Section, case: str, base: str, order: list[str]) -> str:
    header = ["generator", "requests/s", "CPU us/request", "user", "system", f"x {base}", "peak MB", "failed"]
    there = section.contenders(case)
    return table(header, [_row(section, case, name, base) for name in order if name in there])


def _row(section: Section, case: str, name: str, base: str) -> Row:
    return [
        *costs(section, case, name),
        number(section.ratio(case, name, base, results.cpu), "{:.2f}"),
        number(section.median(case, name, results.memory), "{:.1f}"),
        number(section.median(case, name, results.said("failed")), "{:.0f}"),
    ]


def _late(section: Section) -> float | None:
    return section.median(scripts.OPEN, scripts.TASK, results.said("lateness_p99_ms"))


def judge(section: Section) -> Iterator[Goal]:
    """Yield the goals of the section."""
    for case, file in scripts.CASES.items():
        found = section.ratio(case, scripts.WEIR, scripts.WRK, results.cpu)
        yield at_most(f"{file or 'one request'}: CPU per request at most 1.00 x wrk", found, 1.00, "{:.3f} x")
    found = section.median(scripts.COUNTER, scripts.WEIR, results.cpu)
    yield at_most(f"counter.lua: at most {MAX_LUA_US:.0f} us CPU per request", found, MAX_LUA_US, "{:.2f} us")
    for name, limit in MAX_PYTHON_US.items():
        found = section.median(STEPS, name, results.cpu)
        yield at_most(f"`{name}`: at most {limit:.0f} us CPU per request", found, limit, "{:.2f} us")
    found = section.median(STEPS, scripts.JAVASCRIPT, results.cpu)
    limit = MAX_JAVASCRIPT_US
    yield at_most(f"`{scripts.JAVASCRIPT}`: at most {limit:.0f} us CPU per request", found, limit, "{:.2f} us")
    for peer, times in MIN_TIMES_LOCUST.items():
        found = section.ratio(STEPS, peer, scripts.LOCUSTFILE, results.cpu)
        yield at_least(
            f"a locustfile: at least {times:.0f} x the requests per CPU second of {peer}", found, times, "{:.1f} x"
        )
    promise = f"{scripts.OPEN}, `{scripts.TASK}`: lateness at p99 at most {MAX_LATE_MS:.0f} ms"
    yield at_most(promise, _late(section), MAX_LATE_MS, "{:.3f} ms")
    trials = idle_trials(section, scripts.IDLE)
    many = trials[-1] if len(trials) > 1 else None
    users = many.connections or 0 if many else scripts.IDLE_USERS
    limit = MAX_IDLE_MB * users / scripts.IDLE_USERS
    peak = many.max_rss_mb if many else None
    yield at_most(f"{users:,} idle users: at most {limit:.0f} MB", peak, limit, "{:.1f} MB")
    yield _memory_of_a_user(section)


def _memory_of_a_user(section: Section) -> Goal:
    trials = idle_trials(section, scripts.IDLE_JAVASCRIPT)
    few, many = (trials[0], trials[-1]) if len(trials) > 1 else (None, None)
    found = None
    if few and many:
        more = (many.connections or 0) - (few.connections or 0)
        found = (many.max_rss_mb - few.max_rss_mb) * 1000 / more if more else None
    users = many.connections or 0 if many else scripts.IDLE_USERS
    promise = f"{users:,} {scripts.IDLE_JAVASCRIPT}: at most {MAX_USER_KB:.0f} KB each"
    return at_most(promise, found, MAX_USER_KB, "{:.0f} KB")
