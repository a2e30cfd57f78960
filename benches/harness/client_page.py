"""The part of the page that is about HTTP clients of Python's."""

from __future__ import annotations

from collections.abc import Iterator

from harness import clients, results
from harness.client_goals import cpu
from harness.results import Section
from harness.servers import PAGE_BYTES
from harness.table import Row, number, table

METHOD = f"""\
One process with one client on a core of its own, nginx with a file of {PAGE_BYTES:,} bytes on the other; connections
are kept, bodies are read. CPU time is the client's process's, all threads, from the end of a warm-up: what it takes to
import the client and to connect is not in it. nginx has counted at least as many requests as the client.
"""


def write(section: Section) -> Iterator[str]:
    """All tables of the section."""
    yield "# Client: what a call costs in Python"
    yield METHOD.strip()
    for case, ours, base in (
        (clients.AWAITED, clients.ASYNC, "aiohttp"),
        (clients.ALONE, clients.SYNC, "http.client"),
    ):
        yield f"## {case[0].upper()}{case[1:]}"
        names = sorted(section.contenders(case), key=lambda name: section.median(case, name, cpu) or 0.0)
        yield (
            f"{section.plan['client_s']} s a run, {section.plan['pairs']} rounds."
            + (" `pycurl multi` is libcurl's own loop, which nothing awaits." if case == clients.AWAITED else "")
        )
        header = ["client", "version", "calls/s", "CPU us/call", f"x `{ours}`", f"x {base}", "core", "peak MB"]
        yield table(header, [_row(section, case, name, ours, base) for name in names])


def _row(section: Section, case: str, name: str, ours: str, base: str) -> Row:
    trials = section.trials(case, name)
    return [
        name,
        str(trials[0].server["version"]),
        number(section.median(case, name, results.noted("rate_per_s")), "{:,.0f}"),
        number(section.median(case, name, cpu), "{:.1f}"),
        number(section.ratio(case, name, ours, cpu), "{:.2f}"),
        number(section.ratio(case, name, base, cpu), "{:.2f}"),
        number(section.median(case, name, results.noted("busy")), "{:.0%}"),
        number(section.median(case, name, results.memory), "{:.0f}"),
    ]
