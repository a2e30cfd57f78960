"""Load generators: the command line of each for a load, and a reader of its report."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from harness.process import Finished
from harness.programs import SCRIPTS, Programs


@dataclass(frozen=True)
class Load:
    """Load for a generator."""

    url: str
    seconds: int
    scratch: Path  # folder for files of the generator
    connections: int | None = None  # None: the generator's default
    rate_per_s: int | None = None  # None: closed loop
    depth: int = 1  # requests in flight per connection
    users: int | None = None  # users with `loops` requests each, instead of a duration
    loops: int = 1


@dataclass
class Report:
    """Report of a generator on its own run; fields that it does not report are None or empty."""

    requests: int | None = None
    failed: int | None = None
    rate_per_s: float | None = None
    mean_ms: float | None = None
    percentiles_ms: dict[str, float] = field(default_factory=dict)
    lateness_p99_ms: float | None = None
    skew_ms: float | None = None
    trusted: bool | None = None
    reasons: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Return the reported fields."""
        return {key: value for key, value in asdict(self).items() if value not in (None, {}, [])}


@dataclass(frozen=True)
class Generator:
    """Tool with options."""

    name: str
    program: Path
    arguments: Callable[[Load], list[str]]
    read: Callable[[Finished, Load], Report]
    slow: bool = False  # far behind: measured in fewer rounds

    def command(self, load: Load) -> list[str]:
        """Make the command line."""
        return [str(self.program), *self.arguments(load)]


def catalogue(programs: Programs) -> dict[str, Generator]:
    """Return the generators that are installed, by name."""
    every = (
        ("weir", "weir", weir, read_weir, False),
        ("weir --spin", "weir", lambda load: [*weir(load), "--spin"], read_weir, False),
        ("floor", "floor", floor, read_floor, False),
        ("wrk", "wrk", wrk, read_wrk, False),
        ("ab", "ab", ab, read_ab, False),
        ("h2load", "h2load", h2load, read_h2load, False),
        ("oha", "oha", oha, read_oha, False),
        ("oha --latency-correction", "oha", oha_corrected, read_oha, False),
        ("k6", "k6", k6, read_k6, True),
        ("locust", "locust", locust, read_locust, True),
    )
    return {
        name: Generator(name, programs[program], arguments, read, slow)
        for name, program, arguments, read, slow in every
        if program in programs
    }


def weir(load: Load) -> list[str]:
    """Make the arguments of weir: closed or open loop, or users with loops; one thread, since it has one core."""
    arguments = ["load", load.url, "-t", "1", "--format", "json"]
    if load.users is not None:
        return [*arguments, "--users", str(load.users), "--ramp-up", "2s", "--loops", str(load.loops)]
    arguments += ["-d", f"{load.seconds}s"]
    if load.rate_per_s is not None:
        arguments += ["-r", str(load.rate_per_s)]
    if load.connections is not None:
        arguments += ["-c", str(load.connections)]
    if load.depth > 1:
        arguments += ["--pipeline", str(load.depth)]
    return arguments


def read_weir(finished: Finished, _load: Load) -> Report:
    """Read the JSON of `weir load --format json`."""
    run = json.loads(finished.stdout)
    response = run["response_ms"]
    return Report(
        requests=run["requests"]["total"],
        failed=run["requests"]["failed"],
        rate_per_s=run["rate_per_s"]["achieved"],
        mean_ms=response["mean"],
        percentiles_ms={key: response[key] for key in response if re.fullmatch(r"p\d+", key)},
        lateness_p99_ms=(run.get("lateness_ms") or {}).get("p99"),
        trusted=run["trust"]["ok"],
        reasons=[str(reason) for reason in run["trust"]["reasons"]],
    )


def floor(load: Load) -> list[str]:
    """Make the arguments of the bare loop, which takes a port instead of a URL."""
    port = re.search(r":(\d+)/", load.url)
    arguments = ["--port", port.group(1) if port else "0"]
    arguments += ["-c", str(load.connections), "-d", str(load.seconds)]
    return [*arguments, "--pipeline", str(load.depth)]


def read_floor(finished: Finished, _load: Load) -> Report:
    """Read the counts of the bare loop."""
    counted = json.loads(finished.stdout)
    rate = counted["requests"] / counted["seconds"]
    return Report(requests=counted["requests"], rate_per_s=rate)


def wrk(load: Load) -> list[str]:
    """Make the arguments of wrk: one thread; wrk has the closed loop only."""
    return ["-t", "1", "-c", str(load.connections), "-d", f"{load.seconds}s", "--latency", load.url]


def read_wrk(finished: Finished, _load: Load) -> Report:
    """Read the report of wrk."""
    text = finished.stdout
    percentiles = {
        _percentile(name): _ms(value) for name, value in re.findall(r"^\s+([\d.]+)%\s+([\d.]+\w+)$", text, re.MULTILINE)
    }
    requests = re.search(r"(\d+) requests in", text)
    return Report(
        requests=int(requests.group(1)) if requests else None,
        rate_per_s=_number(r"Requests/sec:\s+([\d.]+)", text),
        mean_ms=_ms(_text(r"Latency\s+([\d.]+\w+)", text)),
        percentiles_ms=percentiles,
    )


def ab(load: Load) -> list[str]:
    """Make the arguments of ab; with -t, it stops at 50,000 requests unless -n comes after it."""
    table = load.scratch / "ab.csv"
    arguments = ["-k", "-q", "-c", str(load.connections), "-t", str(load.seconds)]
    return [*arguments, "-n", "3000000", "-e", str(table), load.url]


def read_ab(finished: Finished, load: Load) -> Report:
    """Read the report of ab, and the finer percentiles of its CSV."""
    with (load.scratch / "ab.csv").open() as table:
        rows = {row[0]: row[1] for row in csv.reader(table)}
    wanted = ("50", "75", "90", "95", "99")
    text = finished.stdout
    return Report(
        requests=int(_number(r"Complete requests:\s+(\d+)", text) or 0),
        failed=int(_number(r"Failed requests:\s+(\d+)", text) or 0),
        rate_per_s=_number(r"Requests per second:\s+([\d.]+)", text),
        mean_ms=_number(r"Time per request:\s+([\d.]+) \[ms\] \(mean\)", text),
        percentiles_ms={f"p{name}": float(rows[name]) for name in wanted if name in rows},
    )


def h2load(load: Load) -> list[str]:
    """Make the arguments of h2load: HTTP/1.1, a rate per connection, and a log of all requests for percentiles."""
    connections = load.connections or 1
    arguments = ["--h1", "-t", "1", "-c", str(connections), "-D", str(load.seconds)]
    if load.rate_per_s is not None:
        arguments += ["--rps", f"{load.rate_per_s / connections:g}"]
        arguments += ["--log-file", str(load.scratch / "h2load.tsv")]
    return [*arguments, load.url]


def read_h2load(finished: Finished, load: Load) -> Report:
    """Read the report of h2load, and its log in the open loop."""
    text = finished.stdout
    columns = _text(r"time for request:\s+(.+)$", text).split()
    log = load.scratch / "h2load.tsv"
    return Report(
        requests=int(_number(r"(\d+) done", text) or 0),
        failed=int(_number(r"(\d+) failed", text) or 0),
        rate_per_s=_number(r"finished in [^,]+, ([\d.]+) req/s", text),
        mean_ms=_ms(columns[2]) if len(columns) > 2 else None,
        percentiles_ms=_log_percentiles(log) if load.rate_per_s is not None else {},
    )


def _log_percentiles(log: Path) -> dict[str, float]:
    """Compute percentiles in ms from a log with start, status (below 0: failure) and response time in us."""
    rows = (line.split("\t") for line in log.read_text().splitlines())
    times = sorted(int(row[2]) / 1000 for row in rows if int(row[1]) > 0)
    if not times:
        return {}
    percents = {"p50": 50, "p75": 75, "p90": 90, "p95": 95, "p99": 99}
    return {name: times[-(-len(times) * percent // 100) - 1] for name, percent in percents.items()}


def oha(load: Load) -> list[str]:
    """Make the arguments of oha: one worker thread, without the terminal interface."""
    arguments = ["--no-tui", "--no-color", "--output-format", "json", "--worker-threads", "1"]
    arguments += ["-c", str(load.connections), "-z", f"{load.seconds}s"]
    if load.rate_per_s is not None:
        arguments += ["-q", str(load.rate_per_s)]
    return [*arguments, load.url]


def oha_corrected(load: Load) -> list[str]:
    """Make the arguments of oha with response times from the intended start, and a wait for the last response."""
    return ["--latency-correction", "-w", *oha(load)]


def read_oha(finished: Finished, _load: Load) -> Report:
    """Read the JSON of oha, which is in seconds."""
    said = json.loads(finished.stdout)
    percentiles = said["latencyPercentiles"]
    return Report(
        requests=sum(said["statusCodeDistribution"].values()),
        rate_per_s=said["summary"]["requestsPerSec"],
        mean_ms=_in_ms(said["summary"]["average"]),
        percentiles_ms={
            _percentile(name.removeprefix("p")): value * 1000
            for name, value in percentiles.items()
            if value is not None
        },
    )


def k6(load: Load) -> list[str]:
    """Make the arguments of k6: a script, and the load in environment variables."""
    arguments = ["run", "--quiet", "--no-usage-report"]
    arguments += ["--summary-export", str(load.scratch / "k6.json")]
    arguments += ["-e", f"URL={load.url}", "-e", f"SECONDS={load.seconds}"]
    arguments += ["-e", f"CONNECTIONS={load.connections}"]
    if load.rate_per_s is not None:
        arguments += ["-e", f"RATE={load.rate_per_s}"]
    return [*arguments, str(SCRIPTS / "k6.js")]


def read_k6(_finished: Finished, load: Load) -> Report:
    """Read the summary exported by k6."""
    metrics = json.loads((load.scratch / "k6.json").read_text())["metrics"]
    times = metrics["http_req_duration"]
    names = {"med": "p50", "p(75)": "p75", "p(90)": "p90", "p(95)": "p95", "p(99)": "p99"}
    return Report(
        requests=metrics["http_reqs"]["count"],
        failed=metrics["http_req_failed"]["passes"],
        rate_per_s=metrics["http_reqs"]["rate"],
        mean_ms=times["avg"],
        percentiles_ms={ours: times[theirs] for theirs, ours in names.items()},
    )


def locust(load: Load) -> list[str]:
    """Make the arguments of Locust; all users start at once, as with the other tools."""
    users = str(load.connections)
    arguments = ["-f", str(SCRIPTS / "locustfile.py"), "--headless", "--json", "-u", users, "-r", users]
    return [*arguments, "-t", f"{load.seconds}s", "--host", load.url.rstrip("/")]


def read_locust(finished: Finished, _load: Load) -> Report:
    """Read the JSON of Locust, with one entry for the one request; times are whole milliseconds."""
    said = json.loads(finished.stdout)
    if not said:
        return Report()
    entry = said[0]
    requests = entry["num_requests"]
    seconds = entry["last_request_timestamp"] - entry["start_time"]
    return Report(
        requests=requests,
        failed=entry["num_failures"],
        rate_per_s=requests / seconds if seconds > 0 else None,
        mean_ms=entry["total_response_time"] / requests if requests else None,
    )


def _percentile(name: str) -> str:
    """Convert `99.9` to `p999`, the name in weir's JSON."""
    return "p" + name.removesuffix(".000").replace(".", "")


def _text(pattern: str, text: str) -> str:
    match = re.search(pattern, text, re.MULTILINE)
    return match.group(1) if match else ""


def _number(pattern: str, text: str) -> float | None:
    found = _text(pattern, text)
    return float(found) if found else None


def _in_ms(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * 1000


def _ms(text: str) -> float:
    """Convert `336.17us`, `1.26ms`, `2.00s` or `1.50m` to milliseconds; nan if invalid."""
    match = re.fullmatch(r"([\d.]+)(us|ms|s|m)", text)
    if not match:
        return float("nan")
    return float(match.group(1)) * {"us": 1e-3, "ms": 1.0, "s": 1e3, "m": 6e4}[match.group(2)]
