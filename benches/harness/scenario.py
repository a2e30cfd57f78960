"""Scenarios: what three steps cost beside other tools, and one step beside the plain loop."""

from __future__ import annotations

import json
import resource
from dataclasses import replace
from pathlib import Path

from harness.generators import Generator, Load, Report, read_k6, read_weir, weir
from harness.process import Finished
from harness.programs import ROOT, Programs
from harness.servers import Server
from harness.shop import shop
from harness.trial import Bench, Trial, rounds

FILES = ROOT / "benches" / "peers" / "scenario"
USERS = 100
IDLE_USERS = 20_000
RATE = 5_000
STEPS, LOOP = "three steps", "one request"
OPEN, IDLE = f"open loop, {RATE:,} iterations/s", "idle users"
PLAIN, ONE, THREE = "weir URL", "weir one.hurl", "weir shop.hurl"
#: The plain loop with as many requests as three steps send.
PLAIN_THREE = f"weir URL, {3 * RATE:,}/s"
#: Descriptors that a generator needs besides those of its users.
SPARE_FILES = 500


def measure(bench: Bench) -> list[Trial]:
    """Measure interleaved rounds of each comparison at one nginx, then the memory of idle users."""
    if "nginx" not in bench.programs:
        return []
    plan, trials = bench.plan, []
    closed = Load("", plan.closed_s, Path(), connections=USERS)
    even = Load("", plan.open_s, Path(), connections=USERS, rate_per_s=RATE)
    # Peers take seconds to start, which counts: a longer run gives them their share.
    steps = [(STEPS, g, replace(closed, seconds=plan.scenario_s)) for g in [ours(bench, THREE), *peers(bench.programs)]]
    loops = [(LOOP, ours(bench, name), closed) for name in (PLAIN, ONE)]
    opened = [(OPEN, ours(bench, name), even) for name in (PLAIN, ONE, THREE)]
    opened.append((OPEN, replace(ours(bench, PLAIN), name=PLAIN_THREE), replace(even, rate_per_s=3 * RATE)))
    with shop(bench.programs["nginx"], bench.server_core) as server:
        for number, (case, generator, load) in rounds([*steps, *loops, *opened], plan.pairs, plan.seed):
            if not generator.slow or number < plan.slow_rounds:
                trials.append(bench.measure(generator, server, load, case=case, round_=number))
        for users in (USERS, idle_users()):
            trials.append(_idle(bench, server, users))
    return trials


def idle_users() -> int:
    """Return the number of idle users that this machine's limit of open files allows."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return min(IDLE_USERS, soft - SPARE_FILES)


def idle_label(users: int) -> str:
    """Return the name in the table of memory."""
    return f"weir, {users:,} users"


def ours(bench: Bench, name: str) -> Generator:
    """Make a generator of weir: the plain loop, or one with a file."""

    def arguments(load: Load) -> list[str]:
        arguments = weir(load)
        if name != PLAIN:
            arguments[1:2] = scenario(name, load)
        return arguments

    return Generator(name, bench.programs["weir"], arguments, read_weir)


def first_step(bench: Bench) -> Generator:
    """Make a generator of weir with a scenario of one step, whose percentiles are those of the step."""

    def read(finished: Finished, load: Load) -> Report:
        response = json.loads(finished.stdout)["steps"][0]["response_ms"]
        percentiles = {key: value for key, value in response.items() if key[0] == "p"}
        return replace(read_weir(finished, load), mean_ms=response["mean"], percentiles_ms=percentiles)

    return replace(ours(bench, ONE), read=read)


def scenario(name: str, load: Load) -> list[str]:
    """Make the arguments of weir for a file."""
    return ["-s", str(FILES / name.removeprefix("weir ")), "--variable", f"base={load.url.rstrip('/')}"]


def peers(programs: Programs) -> list[Generator]:
    """Return the other tools that are installed, with the same three steps."""
    every = (
        ("k6", k6, read_k6),
        ("locust", locust, read_locust),
        ("jmeter", jmeter, read_jmeter),
    )
    return [
        Generator(name, programs[name], arguments, read, slow=True)
        for name, arguments, read in every
        if name in programs
    ]


def k6(load: Load) -> list[str]:
    """Make the arguments of k6."""
    arguments = ["run", "--quiet", "--no-usage-report", "--summary-export", str(load.scratch / "k6.json")]
    arguments += ["-e", f"BASE={load.url.rstrip('/')}", "-e", f"SECONDS={load.seconds}", "-e", f"USERS={USERS}"]
    return [*arguments, str(FILES / "k6.js")]


def locust(load: Load, file: Path = FILES / "locustfile.py") -> list[str]:
    """Make the arguments of Locust; all users start at once."""
    arguments = ["-f", str(file), "--headless", "--json", "-u", str(USERS), "-r", str(USERS)]
    return [*arguments, "-t", f"{load.seconds}s", "--host", load.url.rstrip("/")]


def read_locust(finished: Finished, _load: Load) -> Report:
    """Read the JSON of Locust, with an entry for each step."""
    entries = json.loads(finished.stdout)
    return Report(
        requests=sum(entry["num_requests"] for entry in entries),
        failed=sum(entry["num_failures"] for entry in entries),
    )


def jmeter(load: Load) -> list[str]:
    """Make the arguments of JMeter, which writes a line for each request, as it does by default."""
    port = load.url.rstrip("/").rsplit(":", 1)[1]
    arguments = ["-n", "-t", str(FILES / "shop.jmx"), "-l", str(load.scratch / "jmeter.jtl")]
    arguments += ["-j", str(load.scratch / "jmeter.log")]
    return [*arguments, f"-Jport={port}", f"-Jusers={USERS}", f"-Jseconds={load.seconds}"]


def read_jmeter(_finished: Finished, load: Load) -> Report:
    """Count the lines of JMeter's log of requests."""
    lines = (load.scratch / "jmeter.jtl").read_text().splitlines()
    header, rows = lines[0].split(","), [line.split(",") for line in lines[1:]]
    success = header.index("success")
    return Report(requests=len(rows), failed=sum(row[success] != "true" for row in rows))


def _idle(bench: Bench, server: Server, users: int) -> Trial:
    """Measure users that begin within a few seconds and think until the end."""
    seconds = bench.plan.idle_s

    def arguments(load: Load) -> list[str]:
        ramp = ["--users", str(users), "--ramp-up", f"{seconds}s", "-d", f"{2 * seconds}s", "--think", "1h"]
        return ["load", *scenario(THREE, load), "-t", "1", *ramp, "--format", "json"]

    generator = Generator(idle_label(users), bench.programs["weir"], arguments, read_weir)
    return bench.measure(generator, server, Load("", 2 * seconds, Path(), connections=users), case=IDLE)
