"""Page of the section on responses in time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from harness import results, smart
from harness.proxies import HEDGE_AFTER_S
from harness.results import Section
from harness.smart_goals import CALCULATED, latest_ms, share
from harness.table import Row, number, table

METHOD = f"""\
`weir gate` has its own core; the service behind it, `weir serve work`, shares the other with the generator, whose
lateness and wake-ups are part of all times. Response times count from the intended start of a call, with connecting.

The fraction of successful calls is calculated: of 11 requests to the service 8 are good, and take 100 to 600 ms; 1 has
a body that is not JSON, 1 is a 500, 1 hangs for 10 s. A call makes one attempt, and two more after 300 ms, or when the
first has failed. A good one of these has its response after 300 + 600 = 900 ms at the latest, before
T = {smart.TIMEOUT_MS:,} ms: so a call fails only if all three are bad, and {CALCULATED:.2%} = 1 - (3/11)^3 succeed. The
standard error of that fraction is sqrt(p (1 - p) / n) for n calls.
"""


def write(section: Section) -> Iterator[str]:
    """Yield the parts of the page."""
    yield "# Smart: a response in time"
    yield METHOD.strip()
    yield from _loads(section)
    yield from _hedging(section)
    yield from _storms(section)


def doubts(section: Section) -> list[str]:
    """Return the generator's warnings on its own runs, without the load tests, whose short duration is given."""
    return replace(section, every=[trial for trial in section.every if trial.case == smart.HEDGING]).doubts()


def _loads(section: Section) -> Iterator[str]:
    yield "## Six load tests"
    yield (
        f"`{smart.SMART}`, `GET /api/smart/{smart.TIMEOUT_MS}`, {section.plan['slow_rounds']} rounds"
        + (f"; only {section.plan['loops']:.0%} of the calls in this quick run" if section.plan["quick"] else "")
        + ". Successes are the 200s of all calls of all rounds; T + is the time from the timeout to the response, in"
        " ms, and in brackets the same from the request's send. The last column is the maximum of all rounds."
    )
    header = [
        "load", "calls", "calls/s", "transport failures", "successes", "by calculation", "attempts/call",
        "p50 ms", "p99 ms", "p99.9: T +", "longest: T +",
    ]  # fmt: skip
    cases = [smart.load_case(*load) for load in smart.LOADS]
    yield table(header, [_load(section, case) for case in cases if section.trials(case, smart.SMART)])


def _load(section: Section, case: str) -> Row:
    trials, name = section.trials(case, smart.SMART), smart.SMART
    good, error = share(trials) or (0.0, 0.0)
    extra = section.median(case, name, results.noted("extra_share"))
    rate = section.median(case, name, lambda trial: trial.server["answers"] / trial.server["seconds"])
    from_send = section.median(case, name, results.noted("service_p999_ms"))
    longest_from_send = max(float(trial.server["service_max_ms"]) for trial in trials)
    return [
        case,
        number(sum(trial.server["calls"] for trial in trials), "{:,}"),
        number(rate, "{:,.1f}"),
        str(sum(trial.server["transport_failures"] for trial in trials)),
        f"{good:.2%}",
        f"{CALCULATED:.2%} +- {error:.2%}",
        number(None if extra is None else 1 + extra, "{:.3f}"),
        *(number(section.median(case, name, results.percentile(which)), "{:.0f}") for which in ("p50", "p99")),
        f"{_past(section.median(case, name, results.percentile('p999')))} ({_past(from_send)})",
        f"{_past(latest_ms(trials))} ({_past(longest_from_send)})",
    ]


def _past(ms: float | None) -> str:
    return number(None if ms is None else ms - smart.TIMEOUT_MS, "{:+.2f}")


def _hedging(section: Section) -> Iterator[str]:
    yield "## Hedging against a rare delay"
    yield (
        f"{smart.REPLICAS} x `weir serve work {' '.join(smart.RARELY_SLOW)}`, {smart.HEDGE_RATE}/s in the open loop,"
        f" {section.plan['hedge_s']} s per run without the first {smart.HEDGE_WARMUP_S} s, {section.plan['pairs']}"
        " rounds. Response times in ms. Attempts are counted by the gate. Envoy sends another attempt after a fixed"
        f" time, here {1000 * HEDGE_AFTER_S:g} ms, which is just above the longest usual response; nginx, HAProxy and"
        " Caddy have no hedging."
    )
    shown = ("p50", "p90", "p99", "p999")
    header = ["gate", *shown, "longest", "p99.9 cut by", "extra attempts", "without response"]
    rows = []
    for name in (name for pair in smart.HEDGERS.items() for name in reversed(pair)):
        base = smart.HEDGERS.get(name)
        if not section.trials(smart.HEDGING, name):
            continue
        ratio = section.ratio(smart.HEDGING, name, base, results.percentile("p999")) if base else None
        rows.append([
            f"`{name}`",
            *(number(section.median(smart.HEDGING, name, results.percentile(p)), "{:.1f}") for p in shown),
            number(section.median(smart.HEDGING, name, results.noted("max_ms")), "{:.1f}"),
            number(None if ratio is None else 1 - ratio, "{:.1%}"),
            number(section.median(smart.HEDGING, name, results.noted("extra_share")), "{:.2%}"),
            number(section.median(smart.HEDGING, name, results.noted("transport_failures")), "{:.0f}"),
        ])  # fmt: skip
    yield table(header, rows)


def _storms(section: Section) -> Iterator[str]:
    yield "## Extra attempts without any success"
    yield (
        f"`{smart.STORM}`, {smart.STORM_RATE}/s in the open loop, {section.plan['storm_s']} s per run,"
        f" {section.plan['slow_rounds']} rounds. The gate's counters are read ten times per second; the worst window of"
        " 1 s with calls is the one with the most extra attempts above the budget of its calls. Skipped: extra attempts"
        " of the policy that the budget did not allow."
    )
    header = ["service", "calls", "attempts/call", "worst window: extra / allowed", "skipped", "p99.9 ms", "responses"]
    rows = []
    for case in smart.STORMS:
        for trial in section.trials(case, smart.STORM):
            noted, worst = trial.server, trial.server.get("worst_window")
            rows.append([
                case,
                f"{noted['calls']:,}",
                f"{1 + noted['extra_share']:.3f}",
                f"{worst['extra']} / {worst['allowed']:.1f}" if worst else "-",
                f"{noted['suppressed']:,}",
                number(results.percentile("p999")(trial), "{:.1f}"),
                ", ".join(f"{status}: {count:,}" for status, count in noted["status"].items()),
            ])  # fmt: skip
    yield table(header, rows)
