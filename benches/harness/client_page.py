"""Page of the section on HTTP clients for Python."""

from __future__ import annotations

from collections.abc import Iterator

from harness import clients, results
from harness.client_goals import cpu
from harness.results import Section
from harness.servers import PAGE_BYTES
from harness.table import Row, number, table

METHOD = f"""\
One process with one client on its own core, nginx with a file of {PAGE_BYTES:,} bytes on the other; connections are
kept alive, bodies are read. CPU time is of all threads of the client's process after a warm-up, without importing the
client and connecting. In each run, nginx has counted at least as many requests as the client.
"""


def write(section: Section) -> Iterator[str]:
    """Yield the parts of the page."""
    yield "# Client: CPU time of a call in Python"
    yield METHOD.strip()
    for case, ours, base in (
        (clients.AWAITED, clients.ASYNC, "aiohttp"),
        (clients.FEW, clients.TRANSPORT, "aiohttp"),
        (clients.MANY, clients.TRANSPORT, "aiohttp"),
        (clients.ALONE, clients.SYNC, "http.client"),
        (clients.STREAMED, clients.STREAMS[0], "stream pycurl"),
    ):
        yield f"## {case[0].upper()}{case[1:]}"
        names = sorted(section.contenders(case), key=lambda name: section.median(case, name, cpu) or 0.0)
        yield (
            f"{section.plan['client_s']} s per run, {section.plan['pairs']} rounds."
            + (" `pycurl multi` is libcurl's own loop, without asyncio." if case == clients.AWAITED else "")
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
