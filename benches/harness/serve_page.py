"""The part of the page that is about `weir serve`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from harness import results, served, soak
from harness.results import Section, Value
from harness.serve_goals import SHARES, cpu, error_ms, mb_per_cpu_second, per_cpu_second, rate
from harness.serving import NGINX, PEERS
from harness.table import Row, number, table

METHOD = """\
Here servers are measured, and `weir load` is the generator for all of them; it has a core of its own, and so has the
server, whatever the number of its threads. Requests are those that the generator has a whole response for, with the
status that was expected. CPU time is the server's: what the scheduler counted, in nanoseconds, for all threads of all
its processes, from before the generator started until after it ended. Ratios are medians of those within a round.
"""

BUSY = results.noted("busy")
GENERATOR_BUSY = results.noted("generator_busy")
WITHOUT = results.noted("without")
#: The columns of the table of pools.
SHOWN: tuple[tuple[Value, str], ...] = (
    (rate, "{:,.0f}"),
    (cpu, "{:.2f}"),
    (results.percentile("p99"), "{:.2f}"),
    (results.noted("max_ms"), "{:,.0f}"),
    (BUSY, "{:.0%}"),
    (GENERATOR_BUSY, "{:.0%}"),
    (WITHOUT, "{:,.0f}"),
)


def write(section: Section) -> Iterator[str]:
    """All tables of the section."""
    yield "# Serve: what a service costs, and how exact its delays are"
    yield METHOD.strip()
    yield from _beside_nginx(section)
    yield from _pools(section)
    yield from _busy(section)
    yield from _delays(section)
    yield from _soak(section)


def doubts(section: Section) -> list[str]:
    """Why the generator does not trust its own run, where response times are what is measured."""
    cases = {served.NO_DELAY, *served.DELAYS}
    return replace(section, every=[trial for trial in section.every if trial.case in cases]).doubts()


def _beside_nginx(section: Section) -> Iterator[str]:
    yield "## Beside nginx"
    yield (
        f"Keep-alive, {section.plan['closed_s']} s a run, {section.plan['pairs']} rounds. Small responses:"
        f" {served.SMALL_CONNECTIONS} connections; nginx has one worker and does `return 200`, /echo responds to a GET"
        f" without a body, and to a POST with its body. 5 MiB: {served.STATIC_CONNECTIONS} connections; nginx sends a"
        " file with `sendfile` and `tcp_nopush`."
    )
    header = [
        "response",
        "server",
        "requests/s",
        "server's core",
        "CPU us/request",
        "requests/CPU s",
        "MB/CPU s",
        "x nginx",
    ]
    rows = []
    for case in (served.SMALL_GET, served.SMALL_POST, served.STATIC):
        value = mb_per_cpu_second if case == served.STATIC else per_cpu_second
        for name in sorted(section.contenders(case)):
            rows.append([
                case,
                name,
                *_throughput(section, case, name),
                number(section.median(case, name, per_cpu_second), "{:,.0f}"),
                number(section.median(case, name, mb_per_cpu_second), "{:,.0f}") if case == served.STATIC else "",
                number(section.ratio(case, name, NGINX, value), "{:.2f}"),
            ])  # fmt: skip
    yield table(header, rows)


def _throughput(section: Section, case: str, name: str) -> Row:
    return [
        number(section.median(case, name, rate), "{:,.0f}"),
        number(section.median(case, name, BUSY), "{:.0%}"),
        number(section.median(case, name, GENERATOR_BUSY), "{:.0%}"),
        number(section.median(case, name, cpu), "{:.2f}"),
    ]


def _pools(section: Section) -> Iterator[str]:
    yield "## Functions on a pool of threads"
    yield (
        f"`{served.FUNCTIONS} --threads N` beside two servers in `benches/peers`, written as the manuals of their"
        " libraries show it, with as many threads and the same responses: civetweb, of which libhttp is a fork, and"
        " libmicrohttpd with an epoll per thread. All threads share one core."
        f" {section.plan['serve_s']} s a run, {section.plan['pairs']} rounds. A thread of civetweb stays with its"
        " connection for as long as that lasts, so with keep-alive it serves as many connections as it has threads and"
        " lets all others wait: see the longest answer. Where the generator's core is full, the rate is the"
        " generator's, and what tells servers apart is their CPU time."
    )
    names = (served.FUNCTIONS, *PEERS)
    header = [
        "load", "requests/s", "CPU us/request", "p99 ms", "longest ms", "server's core", "generator's core",
        "without response", *(f"{word} x {peer}" for word in ("rate", "CPU") for peer in PEERS),
    ]  # fmt: skip
    yield f"Cells with several numbers: {' / '.join(names)}."
    rows = []
    for load in served.POOL_LOADS:
        for threads in served.POOLS:
            case = served.pool_case(*load, threads)
            ratios = [section.ratio(case, served.FUNCTIONS, peer, value) for value in (rate, cpu) for peer in PEERS]
            cells = [[number(section.median(case, name, value), form) for name in names] for value, form in SHOWN]
            rows.append([case, *(" / ".join(cell) for cell in cells), *(number(ratio, "{:.2f}") for ratio in ratios)])
    yield table(header, rows)


def _busy(section: Section) -> Iterator[str]:
    yield "## Requests that one core takes"
    yield (
        f"`{served.WORK} {' '.join(served.WORK_FLAGS)}` responds after 5 ms,"
        f" `{served.RATELIMIT} {' '.join(served.RATELIMIT_FLAGS)}` at once. The latter wants nonces that grow, which"
        " `weir load` cannot send: the first response is 200 and all others are 400, after the same steps, so"
        " both are counted."
    )
    rows = [
        [name, *_throughput(section, served.BUSY, name), number(section.median(served.BUSY, name, WITHOUT), "{:,.0f}")]
        for name in section.contenders(served.BUSY)
    ]
    yield table(
        ["service", "responses/s", "server's core", "generator's core", "CPU us/response", "without response"], rows
    )


def _delays(section: Section) -> Iterator[str]:
    yield "## Delays, asked for and measured"
    yield (
        f"{served.DELAY_RATE:,} requests/s in the open loop, {section.plan['delay_s']} s a run. Each cell is how far a"
        " percentile is from the same percentile of the delays asked for, in ms: of response times, which count from"
        " when a request was due, and in brackets of service times, which count from its send. The generator's own"
        " lateness and the network are in them; the service without a delay shows how much that is."
    )
    rows = []
    for case in (served.NO_DELAY, *served.DELAYS):
        for name in section.contenders(case):
            cells = [_errors(section, case, name, which) for which in SHARES]
            lateness = section.median(case, name, results.said("lateness_p99_ms"))
            rows.append([name, case, *cells, number(lateness, "{:.3f}"), *_throughput(section, case, name)])
    header = [
        "service",
        "delay",
        *SHARES,
        "generator's lateness p99 ms",
        "responses/s",
        "server's core",
        "generator's core",
        "CPU us/response",
    ]
    yield table(header, rows)


def _errors(section: Section, case: str, name: str, which: str) -> str:
    def error(value: Value) -> str:
        return number(section.median(case, name, value), "{:+.2f}")

    return f"{error(error_ms(case, which))} ({error(error_ms(case, which, from_send=True))})"


def _soak(section: Section) -> Iterator[str]:
    for trial in section.trials(soak.CASE, soak.SERVICE):
        yield "## Soak"
        noted, said = trial.server, trial.report
        kinds = ", ".join(f"{kind} {count:,}" for kind, count in said["kinds"].items())
        yield (
            f"{said['sent']:,} good and bad requests on `{soak.SERVICE} {' '.join(soak.FLAGS)}` in"
            f" {noted['seconds']:,.0f} s: {kinds}. Before and after, no client is connected; memory is first sampled"
            f" after {noted['settling']:,} requests."
        )
        rows = [
            ["open files", str(noted["files_before"]), str(noted["files_after"])],
            ["resident MB", f"{noted['rss_settled_mb']:.1f}", f"{noted['rss_after_mb']:.1f}"],
        ]
        yield table(["", "before", "after"], rows)
