"""Page and goals of the section on scripts."""

from __future__ import annotations

from collections.abc import Iterator

from harness import results, scripts
from harness.results import Section
from harness.table import Row, number, table
from harness.verdict import Goal, at_most

MAX_SCRIPTED_US = 9.0


def write(section: Section) -> Iterator[str]:
    """Yield the parts of the page."""
    yield "# Scripts: CPU cost of a request in Lua"
    yield (
        "`benches/peers/scripts`, the same files for both programs: `counter.lua` makes each request with a path and a"
        " header of its own by `wrk.format`; `response.lua` sends one request and looks at status, headers and body of"
        f" each response. Closed loop, {scripts.CONNECTIONS} connections and one thread on one core, nginx on the"
        f" other, response of 38 bytes; {section.plan['closed_s']} s per run, rounds: {section.plan['pairs']}. CPU time"
        " is of the whole process with its start. Quote the ratios: the machine drifts."
    )
    for case, file in scripts.CASES.items():
        yield f"## {case[0].upper()}{case[1:]}" + (f" (`{file}`)" if file else "")
        header = ["generator", "requests/s", "CPU us/request", "user", "system", "x wrk", "peak MB", "failed"]
        order = [name for name in (scripts.WRK, scripts.WEIR) if name in section.contenders(case)]
        yield table(header, [_row(section, case, name) for name in order])


def _row(section: Section, case: str, name: str) -> Row:
    return [
        section.marked(case, name),
        number(section.median(case, name, results.rate), "{:,.0f}"),
        number(section.median(case, name, results.cpu), "{:.2f}"),
        number(section.median(case, name, lambda trial: trial.user_us_per_request), "{:.2f}"),
        number(section.median(case, name, lambda trial: trial.sys_us_per_request), "{:.2f}"),
        number(section.ratio(case, name, scripts.WRK, results.cpu), "{:.2f}"),
        number(section.median(case, name, results.memory), "{:.1f}"),
        number(section.median(case, name, results.said("failed")), "{:.0f}"),
    ]


def judge(section: Section) -> Iterator[Goal]:
    """Yield the goals of the section."""
    for case, file in scripts.CASES.items():
        found = section.ratio(case, scripts.WEIR, scripts.WRK, results.cpu)
        yield at_most(f"{file or 'one request'}: CPU per request at most 1.00 x wrk", found, 1.00, "{:.3f} x")
    found = section.median(scripts.COUNTER, scripts.WEIR, results.cpu)
    yield at_most(f"counter.lua: at most {MAX_SCRIPTED_US:.0f} us CPU per request", found, MAX_SCRIPTED_US, "{:.2f} us")
