"""Scripts: what a request costs that Lua makes or looks at, beside wrk with the same file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from harness.generators import Generator, Load, read_weir, read_wrk, weir, wrk
from harness.programs import ROOT
from harness.shop import shop
from harness.trial import Bench, Trial, rounds

FILES = ROOT / "benches" / "peers" / "scripts"
CONNECTIONS = 100
COUNTER, RESPONSE, PLAIN = "a counter in request()", "each response looked at", "one request, without a script"
#: File of each case.
CASES = {COUNTER: "counter.lua", RESPONSE: "response.lua", PLAIN: None}
WRK, WEIR = "wrk", "weir"


def measure(bench: Bench) -> list[Trial]:
    """Measure interleaved rounds of each case at one nginx."""
    if "nginx" not in bench.programs or "wrk" not in bench.programs:
        return []
    plan, trials = bench.plan, []
    load = Load("", plan.closed_s, Path(), connections=CONNECTIONS)
    every = [(case, generator, load) for case in CASES for generator in _generators(bench, CASES[case])]
    with shop(bench.programs["nginx"], bench.server_core) as server:
        for number, (case, generator, asked) in rounds(every, plan.pairs, plan.seed):
            trials.append(bench.measure(generator, server, asked, case=case, round_=number))
    return trials


def _generators(bench: Bench, file: str | None) -> list[Generator]:
    script = ["-s", str(FILES / file)] if file else []

    def scripted(arguments: Callable[[Load], list[str]]) -> Callable[[Load], list[str]]:
        return lambda load: [*arguments(load), *script]

    # getopt of wrk takes options after the URL too.
    return [
        Generator(WRK, bench.programs["wrk"], scripted(wrk), read_wrk),
        Generator(WEIR, bench.programs["weir"], scripted(weir), read_weir),
    ]
