"""`weir send` with limits that are declared wrong or not declared, with outages, and with a host that hangs.

The service counts requests; the oracle reads this count without a network delay. Senders of several cases run at the
same time, since all of them wait most of the time.
"""

from __future__ import annotations

import json
import math
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from harness import limits
from harness.clients import python
from harness.limited import LATE_MS, Limited, Log, limited, log
from harness.process import run
from harness.programs import SCRIPTS
from harness.sender import ended_after, fill, jobs, scratch
from harness.servers import Server, StartError
from harness.trial import Bench, Trial, rounds, shown

SEND, RECIPE = "weir send", "aiohttp + aiolimiter + tenacity"
#: Senders at a time, and the gap between their starts: the first requests of a sender come at full speed.
LANES, APART_S = 6, 1.5
#: Time allowed for learning a limit.
LEARN_S = 10.0
DECLARED_JOBS, OUTAGE_JOBS = 3_000, 1_000
#: Workers of the recipe: the maximum number of requests in flight of `weir send`.
AT_ONCE = 256
#: Time limits of senders.
DECLARED_S, OUTAGE_S = 60, 60
OUT_AFTER_S, OUT_S = 3.0, 10.0
OUTAGE_LIMIT, OUTAGE_PER_S = "bucket:100/1s", 100
HOSTS = 6
ALL_WELL, IN_TURN, HANGING_FIRST = "none hangs", "one hangs, jobs in turn", "one hangs, its jobs first"


@dataclass(frozen=True)
class Case:
    """Service, and options of its sender."""

    name: str
    service: Limited
    declared: str = ""  # limit; empty: none
    flags: tuple[str, ...] = ()  # more flags of `weir send`


_BUCKET = "bucket:2000/10s"
_HALF_USED = Limited(_BUCKET, used=1000, headers=True, retry_after=True)
DECLARED = (
    Case("half used by another client before", _HALF_USED, _BUCKET),
    Case("half used, another client takes 50/s", replace(_HALF_USED, neighbour_per_s=50), _BUCKET),
    Case("declared twice too high", Limited("bucket:1000/10s", headers=True, retry_after=True), _BUCKET),
    Case("declared twice too high, no headers", Limited("bucket:1000/10s"), _BUCKET),
    Case("each request counts 2", Limited(_BUCKET, weight=2, headers=True, retry_after=True), _BUCKET),
)


def _outage(name: str, manner: str, *flags: str) -> Case:
    out = Limited(OUTAGE_LIMIT, outage=manner, outage_after_s=OUT_AFTER_S, outage_s=OUT_S)
    return Case(name, out, OUTAGE_LIMIT, flags)


OUTAGES = (
    _outage("503", "503"),
    _outage("connections refused", "refused"),
    _outage("silence", "silent"),
    _outage("silence, `--timeout 2s`", "silent", "--timeout", "2s"),
)
_SPACED = [("token bucket", "bucket"), ("fixed window", "fixed"), ("sliding window", "sliding")]
UNDECLARED = (
    *(
        Case(f"{name}, {size}{', Retry-After' if told else ''}", Limited(f"{kind}:{size}", retry_after=told))
        for name, kind in _SPACED
        for size in (("1000/10s",) if kind == "bucket" else ("100/1s", "1000/10s"))
        for told in (False, True)
    ),
    Case("20 at once", Limited("concurrency:20", way=(0.001, 0.004), work=(0.1, 0.3))),
)
#: Host without a limit; the sender's concurrency is the only one.
_HOST = Limited(work=(0.1, 0.2))


def hosts_case(sender: str) -> str:
    """Return the name of the case with six hosts."""
    return f"{HOSTS} hosts, {sender}"


def measure(bench: Bench) -> list[Trial]:
    """Measure declared limits, outages, undeclared limits, and a host that hangs."""
    if "weir" not in bench.programs:
        return []
    parts = [(_declared, DECLARED), (_out, OUTAGES), (_undeclared, UNDECLARED)]
    trials = [trial for part, cases in parts for trial in _in_lanes(bench, part, cases)]
    for number, (name, hosts) in _rounds(bench, (ALL_WELL, IN_TURN, HANGING_FIRST)):
        trials.append(_hosts(bench, name, hosts, number))
    return trials


def _rounds(bench: Bench, items: Iterable[Any]) -> list[tuple[int, tuple[str, Any]]]:
    """Pair each item with `weir send` in every round, and with the recipe in the first rounds."""
    asks = [(name, item) for item in items for name in (SEND, RECIPE)]
    every = rounds(asks, bench.plan.delivery_rounds, bench.plan.seed)
    return [(number, ask) for number, ask in every if ask[0] == SEND or number < bench.plan.recipe_rounds]


Part = Callable[[Bench, Case, Trial], None]


def _in_lanes(bench: Bench, part: Part, cases: Iterable[Case]) -> list[Trial]:
    starts = threading.Lock()

    def one(ask: tuple[int, tuple[str, Case]]) -> Trial:
        number, (name, case) = ask
        with starts:
            time.sleep(APART_S)
        trial = Trial(case.name, name, number)
        try:
            seeded = replace(case, service=replace(case.service, seed=bench.plan.seed + number))
            part(bench, seeded, trial)
        except (ValueError, KeyError, OSError, StartError) as error:
            trial.error = f"not measured: {type(error).__name__}: {error}"
        trial.say("{told}")
        return trial

    with ThreadPoolExecutor(LANES) as lanes:
        return list(lanes.map(one, _rounds(bench, cases)))


# --- The parts


def _declared(bench: Bench, case: Case, trial: Trial) -> None:
    """Measure the time of a batch of jobs, and compute that of the oracle."""
    said, seen = _send(bench, case, trial, DECLARED_JOBS, DECLARED_S)
    begin_s = seen.began or 0.0
    until_s = seen.ended if said["interrupted"] else seen.accepted[-1]
    best = _oracle(case, seen, jobs=len(seen.accepted))
    trial.server |= {
        "took_s": until_s - begin_s,
        "oracle_s": best[-1] - begin_s,
        "x_oracle": (until_s - begin_s) / (best[-1] - begin_s),
    }
    trial.server["told"] = "{took_s:.2f} s, the oracle {oracle_s:.2f} s, {rejected} rejected".format(**trial.server)


def _out(bench: Bench, case: Case, trial: Trial) -> None:
    """Count requests into an outage, and measure the time from its end to the full rate."""
    said, seen = _send(bench, case, trial, OUTAGE_JOBS, OUTAGE_S)
    back_s = (seen.began or 0.0) + OUT_AFTER_S + OUT_S
    after = [at_s - back_s for at_s in seen.accepted if at_s >= back_s] or [math.inf]
    trial.server |= {
        # A service that does not listen counts no requests.
        "into_outage": said["failed"] if case.service.outage == "refused" else len(seen.in_outage),
        "first_s": after[0],
        "full_pace_s": max(at_s - number / OUTAGE_PER_S for number, at_s in enumerate(after)),
    }
    form = "{delivered} delivered, {given_up} given up, {into_outage} into it, full pace after {full_pace_s:.2f} s"
    trial.server["told"] = form.format(**trial.server)


def _undeclared(bench: Bench, case: Case, trial: Trial) -> None:
    """Send more jobs than an undeclared limit allows; compute the fractions delivered and rejected."""
    seconds = bench.plan.learn_s
    limit = limits.read(case.service.limit)
    per_s = limit.count / (limit.per_s or case.service.work[0]) if limit else 0.0
    enough = int(per_s * (seconds + LEARN_S)) + (limit.count if limit else 0)
    _, seen = _send(bench, case, trial, enough, seconds)
    begin_s = seen.began or 0.0

    def counted(times: list[float], from_s: float = 0.0) -> int:
        return sum(begin_s + from_s <= at_s < begin_s + seconds for at_s in times)

    def rejected(from_s: float) -> float:
        accepted, rejected = counted(seen.accepted, from_s), counted(seen.rejected, from_s)
        return rejected / max(1, accepted + rejected)

    best = _oracle(case, seen, until_s=begin_s + seconds)
    trial.server |= {
        "of_oracle": counted(seen.accepted, LEARN_S) / counted(best, LEARN_S),
        "rejected_after": rejected(LEARN_S),
        "rejected_all": rejected(0.0),
    }
    form = "{of_oracle:.1%} of the oracle, rejected {rejected_after:.2%}, in all {rejected_all:.2%}"
    trial.server["told"] = form.format(**trial.server)


def _oracle(case: Case, seen: Log, *, jobs: float = math.inf, until_s: float = math.inf) -> list[float]:
    limit, begin_s = limits.read(case.service.limit), seen.began
    if limit is None or begin_s is None:
        raise ValueError("no request has arrived")
    if case.service.used:
        limit.take(begin_s, case.service.used)
    work = case.service.work_times() if isinstance(limit, limits.Concurrency) else ()
    weight, others = case.service.weight, seen.neighbour
    return limits.oracle(limit, begin_s=begin_s, until_s=until_s, jobs=jobs, weight=weight, others=others, work=work)


def _hosts(bench: Bench, name: str, hosts: str, number: int) -> Trial:
    """Measure the rate of five hosts, alone or beside one that accepts requests and never responds."""
    each, seconds = bench.plan.host_jobs, bench.plan.hosts_s
    trial = Trial(hosts_case(name), hosts, number, asked_s=seconds)
    try:
        with ExitStack() as stack:
            folder = stack.enter_context(scratch())
            services = [replace(_HOST, seed=n) for n in range(HOSTS - 1)]
            well = [stack.enter_context(limited(one, bench.server_core)) for one in services]
            hanging = stack.enter_context(limited(replace(_HOST, hangs=True), bench.server_core))
            (folder / "jobs.jsonl").write_text(_lines(well, hanging, hosts, each))
            _deliver(bench, trial, name, folder, seconds)
            seen = [log(server) for server in well]
        accepted = sorted(at_s for one in seen for at_s in one.accepted)
        trial.requests = len(accepted)
        all_done = len(accepted) >= each * (HOSTS - 1)
        took_s = (accepted[-1] if all_done else max(one.ended for one in seen)) - accepted[0] if accepted else seconds
        trial.server = {"delivered": len(accepted), "pace_per_s": len(accepted) / took_s}
        trial.server["told"] = "{delivered} delivered, {pace_per_s:,.0f}/s".format(**trial.server)
        _trust(trial, seen)
    except (ValueError, KeyError, OSError, StartError) as error:
        trial.error = f"not measured: {type(error).__name__}: {error}"
    trial.say("{told}")
    return trial


def _lines(well: Iterable[Server], hanging: Server, hosts: str, each: int) -> str:
    """Make the lines of the jobs: the same number for each host, with the one that hangs if the case has it."""
    lines = []
    for turn in range(each):
        lines += [(turn, server) for server in well]
        if hosts != ALL_WELL:
            lines.append((-1 if hosts == HANGING_FIRST else turn, hanging))
    lines.sort(key=lambda line: line[0])
    return "".join(
        json.dumps({"id": str(number), "url": f"{server.url}job?id={number}"}) + "\n"
        for number, (_, server) in enumerate(lines)
    )


# --- One sender


def _send(bench: Bench, case: Case, trial: Trial, count: int, seconds: float) -> tuple[dict[str, Any], Log]:
    """Run the trial's sender at its service; return its report and the service's counts."""
    with limited(case.service, bench.server_core) as server, scratch() as folder:
        jobs(folder, count)
        url = f"{server.url}job?id={{id}}"
        said = _deliver(bench, trial, trial.contender, folder, seconds, url=url, case=case)
        seen = log(server)
    if not seen.accepted:
        raise ValueError("no request was accepted")
    trial.requests, trial.asked_s = len(seen.accepted), round(seconds)
    trial.server = {
        "delivered": seen.delivered(),
        "given_up": said["dead_lettered"] + said["expired"],
        "rejected": len(seen.rejected),
        "interrupted": said["interrupted"],
    }
    _trust(trial, [seen])
    return said, seen


def _deliver(
    bench: Bench,
    trial: Trial,
    sender: str,
    folder: Path,
    seconds: float,
    *,
    url: str = "",
    case: Case | None = None,
) -> dict[str, Any]:
    """Run the sender with the jobs in the folder, and terminate it after `seconds`; return its report."""
    ends, where = ended_after(seconds + 1), ["--url", url] if url else []
    declared, flags = (case.declared, case.flags) if case else ("", ())
    if sender == RECIPE:
        interpreter = python("aiohttp")
        if not interpreter.exists():
            raise ValueError("not on this machine")
        command = [str(interpreter), str(SCRIPTS / "recipe.py"), str(folder / "jobs.jsonl"), *where]
        command += ["--at-once", str(AT_ONCE), "--seconds", f"{seconds + 1:g}"]
        if limit := limits.read(declared):
            command += ["--limit", f"{limit.count}/{limit.per_s:g}"]
        ends = []
    else:
        command = [str(bench.programs["weir"]), "send", str(folder / "jobs.jsonl"), *where, "-m", "GET", *flags]
        command += ["--limit", declared] if declared else []
        command += ["--out", str(folder / "results.jsonl"), "--format", "json", "--quiet"]
    trial.command = shown(command)
    finished = run(ends + command, core=bench.generator_core, cost=bench.programs["cost"], seconds=seconds)
    # 1: not all jobs were delivered; the tables show this.
    if finished.status not in (0, 1):
        raise ValueError(f"exit {finished.status}: {finished.stderr.strip()[-200:]}")
    said: dict[str, Any] = json.loads(finished.stdout)
    fill(trial, finished, said)
    return said


def _trust(trial: Trial, seen: Iterable[Log]) -> None:
    """Mark the trial as untrusted if its service was late."""
    late_ms = max(one.late_ms for one in seen)
    trial.report["trusted"] = late_ms <= LATE_MS
    trial.report["reasons"] = (
        [] if late_ms <= LATE_MS else [f"the service was {late_ms:.0f} ms late, or more, for 1 % of the time"]
    )
