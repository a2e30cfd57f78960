"""Page and goals of the section on watched loads."""

from __future__ import annotations

from collections.abc import Iterator

from harness import results, watched
from harness.results import Section
from harness.table import Row, number, table
from harness.trial import Trial
from harness.verdict import Goal, at_most

#: Of a core, beyond the same load without a page.
MAX_ONE_PAGE, MAX_PAGES = 0.01, 0.02
MAX_CLOSED = 1.02
MAX_REDRAW_MS = 16.0
MAX_LATER_MS = 0.05


def write(section: Section) -> Iterator[str]:
    """Yield the parts of the page."""
    yield "# Watched loads: the cost of the live page and of outputs"
    yield (
        "The same load without and with who watches it, at nginx on the other core, where the readers of the page's"
        f" events are, too. Rounds: {section.plan['pairs']}, of the closed loop {watched.CLOSED_ROUNDS} times as many."
        " CPU time is of the whole process. `of a core` is the median of the differences to the plain load within each"
        " round, per second of the run."
    )
    for case, seconds in ((watched.CLOSED, "closed_s"), (watched.OPEN, "open_s")):
        yield f"## {case[0].upper()}{case[1:]}"
        yield f"{section.plan[seconds]} s per run."
        header = ["load", "requests/s", "CPU us/request", "x plain", "of a core", "lateness p99 ms", "peak MB"]
        yield table(header, [_row(section, case, name) for name in section.contenders(case)])
    yield "## Drawing"
    yield (
        f"The page in Chromium with {watched.DRAWN}, 1,280 pixels wide: an interval comes, and all of the page is made"
        " again and laid out. Median of 20 in each round."
    )
    drawn = section.median(watched.DRAWN, watched.CHROMIUM, results.noted("redraw_ms"))
    yield table(["page", "redraw ms"], [[watched.DRAWN, number(drawn, "{:.1f}")]])


def _row(section: Section, case: str, name: str) -> Row:
    ratio = section.ratio(case, name, watched.PLAIN, results.cpu)
    return [
        section.marked(case, name),
        number(section.median(case, name, results.rate), "{:,.0f}"),
        number(section.median(case, name, results.cpu), "{:.2f}"),
        number(ratio, "{:.3f}"),
        number(section.difference(case, name, watched.PLAIN, _of_a_core), "{:+.2%}"),
        number(section.median(case, name, results.said("lateness_p99_ms")), "{:.3f}"),
        number(section.median(case, name, results.memory), "{:.1f}"),
    ]


def _of_a_core(trial: Trial) -> float:
    return trial.cpu_us_per_request * trial.rate_per_s / 1e6


def judge(section: Section) -> Iterator[Goal]:
    """Yield the goals."""
    for name, limit in ((watched.PAGE, MAX_ONE_PAGE), (watched.PAGES, MAX_PAGES)):
        found = section.difference(watched.OPEN, name, watched.PLAIN, _of_a_core)
        yield at_most(f"`{name}`: at most {limit:.0%} of a core", found, limit, "{:.2%}")
    for name in (watched.PAGE, watched.LINES, watched.STATSD, watched.SCRAPE):
        found = section.ratio(watched.CLOSED, name, watched.PLAIN, results.cpu)
        promise = f"closed loop, `{name}`: CPU per request at most {MAX_CLOSED:.2f} x the plain load"
        yield at_most(promise, found, MAX_CLOSED, "{:.3f} x")
    late = section.difference(watched.OPEN, watched.PAGE, watched.PLAIN, results.said("lateness_p99_ms"))
    promise = f"open loop, `{watched.PAGE}`: lateness at p99 at most {1000 * MAX_LATER_MS:.0f} us more"
    yield at_most(promise, late, MAX_LATER_MS, "{:+.3f} ms")
    drawn = section.median(watched.DRAWN, watched.CHROMIUM, results.noted("redraw_ms"))
    yield at_most(f"{watched.DRAWN} are drawn in at most {MAX_REDRAW_MS:.0f} ms", drawn, MAX_REDRAW_MS, "{:.1f} ms")
