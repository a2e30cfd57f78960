"""Scripts: what a request costs that Lua, Python or JavaScript makes, beside wrk, Locust and k6 with the same steps."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from harness import scenario
from harness.generators import Generator, Load, read_k6, read_weir, read_wrk, weir, wrk
from harness.programs import ROOT
from harness.scenario import STEPS, USERS, locust, read_locust
from harness.shop import shop
from harness.trial import Bench, Trial, rounds

FILES = ROOT / "benches" / "peers" / "scripts"
CONNECTIONS = 100
COUNTER, RESPONSE, PLAIN = "a counter in request()", "each response looked at", "one request, without a script"
#: File of each case in Lua.
CASES = {COUNTER: "counter.lua", RESPONSE: "response.lua", PLAIN: None}
WRK, WEIR = "wrk", "weir"
#: Requests per second of the open loop, three for each iteration.
RATE = 5_000
OPEN, IDLE = f"open loop, {RATE:,} requests/s", "idle users"
IDLE_USERS = 10_000
FAST_USER, HTTP_USER, K6 = "locust, FastHttpUser", "locust, HttpUser", "k6"
TASK, LOCUSTFILE = "weir shop.py", "weir locustfile.py"
#: The file of k6, and users of another one in the table of memory.
JAVASCRIPT, IDLE_JAVASCRIPT = "weir k6.js", "idle users of k6's scripts"
#: Files of weir in Python.
PYTHON = {TASK: FILES / "shop.py", LOCUSTFILE: scenario.FILES / "locustfile.py"}


def measure(bench: Bench) -> list[Trial]:
    """Measure interleaved rounds of each case at one nginx, then the memory of idle users."""
    if "nginx" not in bench.programs:
        return []
    plan, trials = bench.plan, []
    load = Load("", plan.closed_s, Path(), connections=CONNECTIONS)
    every = [(case, generator, load) for case in CASES for generator in _in_lua(bench, CASES[case])]
    # As in the section on scenarios: a longer run gives peers that start slowly their share.
    steps = replace(load, seconds=plan.scenario_s)
    every += [(STEPS, generator, steps) for generator in [*_own(bench), *_peers(bench)]]
    every += [(OPEN, _in_python(TASK), replace(load, seconds=plan.open_s, rate_per_s=RATE // 3))]
    with shop(bench.programs["nginx"], bench.server_core) as server:
        for number, (case, generator, asked) in rounds(every, plan.pairs, plan.seed):
            if not generator.slow or number < plan.slow_rounds:
                trials.append(bench.measure(generator, server, asked, case=case, round_=number))
        for users in (USERS, idle_users()):
            idle = Load("", 2 * plan.idle_s, Path(), connections=users)
            trials.append(bench.measure(_idle(users, plan.idle_s), server, idle, case=IDLE))
            script = _idle_javascript(bench, users, plan.idle_s)
            trials.append(bench.measure(script, server, idle, case=IDLE_JAVASCRIPT))
    return trials


def idle_users() -> int:
    """Return the number of idle users that this machine's limit of open files allows."""
    return min(IDLE_USERS, scenario.idle_users())


def idle_label(users: int) -> str:
    """Return the name in the table of memory."""
    return f"weir idle.py, {users:,} users"


def _in_lua(bench: Bench, file: str | None) -> list[Generator]:
    script = ["-s", str(FILES / file)] if file else []

    def scripted(arguments: Callable[[Load], list[str]]) -> Callable[[Load], list[str]]:
        return lambda load: [*arguments(load), *script]

    # getopt of wrk takes options after the URL too.
    wrks = [Generator(WRK, bench.programs["wrk"], scripted(wrk), read_wrk)] if "wrk" in bench.programs else []
    return [*wrks, Generator(WEIR, bench.programs["weir"], scripted(weir), read_weir)]


def _weir_of_package() -> Path:
    """Return the program in the package, which has its interpreter beside it."""
    return Path(sys.executable).parent / "weir"


def _in_python(name: str) -> Generator:
    def arguments(load: Load) -> list[str]:
        return [*weir(replace(load, url=load.url.rstrip("/"))), "-s", str(PYTHON[name])]

    return Generator(name, _weir_of_package(), arguments, read_weir)


def _own(bench: Bench) -> list[Generator]:
    """Return weir with files of Python and of k6."""
    javascript = Generator(JAVASCRIPT, bench.programs["weir"], _in_javascript, read_weir)
    return [*map(_in_python, PYTHON), javascript]


def _in_javascript(load: Load) -> list[str]:
    base = load.url.rstrip("/")
    # The load is that of the command line; the options are read all the same.
    variables = ["-e", f"BASE={base}", "-e", f"SECONDS={load.seconds}", "-e", f"USERS={USERS}"]
    return [*weir(replace(load, url=base)), "-s", str(scenario.FILES / "k6.js"), *variables]


def _peers(bench: Bench) -> list[Generator]:
    """Return Locust with both of its clients, and k6 with the same steps in JavaScript."""
    found = []
    if "locust" in bench.programs:
        program = bench.programs["locust"]
        http_user = FILES / "http_locustfile.py"
        found.append(Generator(FAST_USER, program, locust, read_locust, slow=True))
        found.append(Generator(HTTP_USER, program, lambda load: locust(load, http_user), read_locust, slow=True))
    if "k6" in bench.programs:
        found.append(Generator(K6, bench.programs["k6"], scenario.k6, read_k6, slow=True))
    return found


def _idle(users: int, ramp_up_s: int) -> Generator:
    def arguments(load: Load) -> list[str]:
        ramp = ["--users", str(users), "--ramp-up", f"{ramp_up_s}s", "-d", f"{load.seconds}s", "--format", "json"]
        return ["load", "-s", str(FILES / "idle.py"), load.url.rstrip("/"), *ramp]

    return Generator(idle_label(users), _weir_of_package(), arguments, read_weir)


def _idle_javascript(bench: Bench, users: int, ramp_up_s: int) -> Generator:
    def arguments(load: Load) -> list[str]:
        ramp = ["--users", str(users), "--ramp-up", f"{ramp_up_s}s", "-d", f"{load.seconds}s", "--format", "json"]
        return ["load", "-t", "1", "-s", str(FILES / "idle.js"), "-e", f"BASE={load.url.rstrip('/')}", *ramp]

    return Generator(f"weir idle.js, {users:,} users", bench.programs["weir"], arguments, read_weir)
