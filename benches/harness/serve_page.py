"""Page of the section on `weir serve`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from harness import results, served, soak
from harness.results import Section, Value
from harness.serve_goals import SHARES, cpu, error_ms, mb_per_cpu_second, per_cpu_second, rate
from harness.serving import NGINX, PEERS
from harness.table import Row, number, table

METHOD = """\
Servers are measured here; `weir load` is the generator for all of them. Generator and server have a core each, with any
number of threads. Requests are those with a complete response and the expected status at the generator. CPU time is of
all threads of all processes of the server, as the scheduler counts it in nanoseconds, from before the generator's start
until after its end. Ratios are medians of the ratios within each round.
"""

BUSY = results.noted("busy")
GENERATOR_BUSY = results.noted("generator_busy")
WITHOUT = results.noted("without")
#: Columns of the table of pools.
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
    """Yield the parts of the page."""
    yield "# Serve: CPU cost, and accuracy of delays"
    yield METHOD.strip()
    yield from _beside_nginx(section)
    yield from _pools(section)
    yield from _busy(section)
    yield from _delays(section)
    yield from _soak(section)


def doubts(section: Section) -> list[str]:
    """Return the generator's warnings on its own runs, where response times are measured."""
    cases = {served.NO_DELAY, *served.DELAYS}
    return replace(section, every=[trial for trial in section.every if trial.case in cases]).doubts()


def _beside_nginx(section: Section) -> Iterator[str]:
    yield "## Beside nginx"
    yield (
        f"Keep-alive, {section.plan['closed_s']} s per run, {section.plan['pairs']} rounds. Small responses:"
        f" {served.SMALL_CONNECTIONS} connections; nginx has one worker and `return 200`, /echo responds to a GET"
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
        f"`{served.FUNCTIONS} --threads N` beside two servers in `benches/peers`, written after the manuals of their"
        " libraries, with the same number of threads and the same responses: civetweb, of which libhttp is a fork, and"
        " libmicrohttpd with an epoll per thread. All threads share one core."
        f" {section.plan['serve_s']} s per run, {section.plan['pairs']} rounds. A thread of civetweb serves a single"
        " connection until it closes, so with keep-alive it serves one connection per thread, and all others wait: see"
        " the longest response time. Where the generator's core is full, the rate is limited by the generator; compare"
        " servers by their CPU time."
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
    yield "## Maximum throughput of one core"
    yield (
        f"`{served.WORK} {' '.join(served.WORK_FLAGS)}` responds after 5 ms,"
        f" `{served.RATELIMIT} {' '.join(served.RATELIMIT_FLAGS)}` at once. The latter requires increasing nonces, and"
        " `weir load` sends a constant one: the first response is 200 and all others are 400, after the same steps, so"
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
    yield "## Configured and measured delays"
    yield (
        f"{served.DELAY_RATE:,} requests/s in the open loop, {section.plan['delay_s']} s per run. Each cell is the"
        " difference between a measured percentile and the same percentile of the configured delays, in ms: of response"
        " times, from the intended start of a request, and in brackets of service times, from its send. Both include"
        " the generator's own lateness and the network; the service without a delay shows their size."
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
            f" {noted['seconds']:,.0f} s: {kinds}. Before and after, no client is connected; memory is first read"
            f" after {noted['settling']:,} requests."
        )
        rows = [
            ["open files", str(noted["files_before"]), str(noted["files_after"])],
            ["resident MB", f"{noted['rss_settled_mb']:.1f}", f"{noted['rss_after_mb']:.1f}"],
        ]
        yield table(["", "before", "after"], rows)
