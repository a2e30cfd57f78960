"""`weir send` through the rate limits of `weir serve ratelimit`, and at full speed without limits."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness import queues, stores, submitting
from harness.clients import python
from harness.process import environment, run
from harness.programs import SCRIPTS, STUDIES
from harness.sender import ended_after, fill, jobs, requests_served, scratch, served, summary
from harness.servers import Server, StartError
from harness.trial import Bench, Trial, rounds, shown

SEND = "weir send"
IN_FILE, IN_MEMORY = f"{SEND}, SQLite", f"{SEND}, memory"
SATURATED, GENERATED = "the reference rate-limited API, saturated", "the reference generator"
UNLIMITED, LATE = "no limit, a service that echoes", "some 10,000 sends/s"

LIMIT, WINDOW_S, WAY_MS = 20, 1.0, 50
#: The delay bound is rounded up to whole milliseconds.
STEP_S = 0.001
KEYS = 5
#: Time until the rate is steady.
WARMUP_S = 5
#: A key may send 10 ms after the last request has arrived, so a few more than 100 keys send 10,000/s.
LATE_KEYS, LATE_MAX_PER_S = 110, 11_000
TTL = "1s"


@dataclass(frozen=True)
class Setting:
    """Rate-limited test server, and options of the sender."""

    name: str
    keys: int = KEYS
    limit: str = f"{LIMIT}/1s"
    way_ms: int = WAY_MS
    bound: str = f"{WAY_MS}ms"
    serve: tuple[str, ...] = ()
    send: tuple[str, ...] = ("--no-keepalive",)
    #: Minimum rate per key, by the delay bound; None without one.
    key_per_s: float | None = None
    #: Class of the sender in Python; None for `weir send`.
    sender: str | None = None


def _promised(way_s: float, limit: int = LIMIT) -> float:
    """Compute the rate per key; in order, a request waits until the one before has arrived."""
    windowed = limit / (WINDOW_S + way_s + STEP_S)
    return min(windowed, 1 / way_s) if way_s else windowed


REFERENCE = Setting(SATURATED, key_per_s=_promised(WAY_MS / 1000))
KEEPALIVE = ("--keepalive",)
FROM_PYTHON = tuple(
    Setting(f"from Python, `weir.{sender}`", key_per_s=_promised(WAY_MS / 1000), sender=sender)
    for sender in ("AsyncSender", "Sender")
)
SETTINGS = (
    *FROM_PYTHON,
    *(Setting(f"{keys} key{'s' * (keys > 1)}", keys=keys, key_per_s=_promised(0.05)) for keys in (1, 3, 20, 200)),
    *(
        Setting(f"delays of 0 to {ms} ms", way_ms=ms, bound=f"{ms}ms", key_per_s=_promised(ms / 1e3))
        for ms in (0, 5, 500)
    ),
    Setting("bound learned from responses", bound="learn"),
    Setting("no bound, responses alone", bound="none"),
    Setting("connections are kept", serve=KEEPALIVE, send=(), key_per_s=_promised(0.05)),
    Setting("a sliding counter", limit=f"counter:{LIMIT}/1s", key_per_s=_promised(0.05, LIMIT - 1)),
    Setting("aligned windows", limit=f"aligned:{LIMIT}/1s", key_per_s=_promised(0.05)),
    Setting("a token bucket", limit=f"bucket:{LIMIT}/1s", key_per_s=_promised(0.05)),
    Setting("5 at once", limit="concurrency:5"),
)


def measure(bench: Bench) -> list[Trial]:
    """Measure the reference rate-limited API, other limits, no limit, and stores."""
    if "weir" not in bench.programs:
        return []
    trials = [_limited(bench, REFERENCE, bench.plan.send_s, 0), _generated(bench)]
    trials += [_limited(bench, setting, bench.plan.setting_s, 0) for setting in SETTINGS]
    trials += _unlimited(bench)
    trials += [_late(bench, name, number) for number, name in _rounds(bench, (IN_FILE, IN_MEMORY))]
    trials += stores.measure(bench)
    trials += submitting.measure(bench)
    return trials


def _rounds(bench: Bench, names: tuple[str, ...]) -> Iterator[tuple[int, str]]:
    return rounds(names, bench.plan.pairs, bench.plan.seed)


# --- Rate-limited API


class Count(threading.Thread):
    """Requests accepted by the server in a number of seconds, once the rate is steady."""

    def __init__(self, server: Server, seconds: float) -> None:
        """Make a thread that is not started yet."""
        super().__init__(daemon=True)
        self._server, self._seconds = server, seconds
        self.accepted, self.took_s = 0, 0.0

    def run(self) -> None:
        """Wait for the first request, then count."""
        deadline = time.monotonic() + 30
        while not stats(self._server)["accepted"] and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(WARMUP_S)
        begun, before = time.monotonic(), stats(self._server)["accepted"]
        time.sleep(self._seconds)
        self.accepted = stats(self._server)["accepted"] - before
        self.took_s = time.monotonic() - begun


def stats(server: Server) -> dict[str, Any]:
    """Read the counters of the server."""
    return dict(json.loads(server.get("/stats")))


def ratelimit_flags(setting: Setting) -> list[str]:
    """Make the arguments of `weir serve`."""
    delay = f"0ms..{setting.way_ms}ms" if setting.way_ms else "0ms"
    flags = ["--keys", str(setting.keys), "--limit", setting.limit, "--latency-in", delay, "--latency-out", delay]
    return ["ratelimit", *flags, *setting.serve]


def jobs_for(setting: Setting, seconds: float) -> int:
    """Return more jobs than can be sent in this time."""
    return int(setting.keys * (LIMIT * seconds / WINDOW_S * 1.2 + LIMIT))


def _target(server: Server, folder: Path) -> list[str]:
    """Make the arguments for URL and API keys."""
    keys = folder / "keys.txt"
    if not keys.exists():  # another sender may be about to read it
        keys.write_text("\n".join(stats(server)["keys"]) + "\n")
    return ["--url", f"{server.url}api/request?api_key={{key}}&nonce={{nonce}}&req_id={{id}}", "--keys-file", str(keys)]


def send_command(bench: Bench, server: Server, setting: Setting, folder: Path, source: str, *more: str) -> list[str]:
    """Make a command of `weir send`; results go to results.jsonl, without `--out` in `more`."""
    command = [str(bench.programs["weir"]), "send", source, *_target(server, folder), "--ordered"]
    command += ["--limit", setting.limit, "--delay-bound", setting.bound, *setting.send]
    if "--out" not in more:
        command += ["--out", str(folder / "results.jsonl")]
    return [*command, "--format", "json", "--quiet", *more]


def _limited(bench: Bench, setting: Setting, seconds: int, number: int) -> Trial:
    """Send more jobs than the limit allows, for a time; the server counts."""
    trial = Trial(setting.name, SEND, number, asked_s=seconds)
    try:
        with served(bench, *ratelimit_flags(setting)) as server, scratch() as folder:
            whole = seconds + WARMUP_S + 2
            enough = jobs_for(setting, whole)
            ends: list[str] = []
            if setting.sender:
                command = [str(python("weir")), str(SCRIPTS / "through.py"), setting.sender, *_target(server, folder)]
                command += ["--limit", setting.limit, "--delay-bound", setting.bound]
                command += ["--jobs", str(enough), "--seconds", str(whole)]
            else:
                command = send_command(bench, server, setting, folder, str(jobs(folder, enough)))
                ends = ended_after(whole)
            trial.command = shown(command)
            count = Count(server, seconds)
            count.start()
            finished = run(ends + command, core=bench.generator_core, cost=bench.programs["cost"], seconds=whole)
            count.join()
            said, counted = summary(finished), stats(server)
            fill(trial, finished, said)
            trial.requests = count.accepted
            trial.server = {
                "accepted_per_s": count.accepted / max(count.took_s, 1e-9),
                "accepted": counted["accepted"],
                "rejected": counted["rejected"],
                "exceeded": counted["rejected"]["rate_limited"] + counted["rejected"]["blocked"],
                "overtaken": counted["rejected"]["invalid_nonce"],
                "done": said["done"],
                "lost": counted["accepted"] - said["done"],
            }
    except (ValueError, KeyError, OSError, StartError) as error:
        trial.error = f"not measured: {error}"
    trial.say("{accepted_per_s:.1f}/s accepted, {exceeded} x 429, {overtaken} x 400, {lost} lost")
    return trial


def _generated(bench: Bench) -> Trial:
    """Run the reference generator at the reference rate-limited API: no job is lost or expires."""
    seconds = bench.plan.send_s
    trial = Trial(GENERATED, SEND, 0, asked_s=seconds)
    generator = STUDIES / "rate-limited-client" / "generator.py"
    made = [sys.executable, str(generator), "--seconds", str(seconds), "--seed", "1"]
    try:
        with served(bench, *ratelimit_flags(REFERENCE)) as server, scratch() as folder:
            more = ("--ttl", TTL, "--store", str(folder / "jobs.db"))
            command = send_command(bench, server, REFERENCE, folder, "-", *more)
            trial.command = f"{shown(made)} | {shown(command)}"
            with subprocess.Popen(made, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()) as making:
                finished = run(
                    command,
                    core=bench.generator_core,
                    cost=bench.programs["cost"],
                    seconds=seconds,
                    stdin=making.stdout,
                )
                made_count = int(making.communicate()[1])
            # Exit code 1 if a job has expired; those are counted.
            said, counted = json.loads(finished.stdout), stats(server)
            fill(trial, finished, said)
            trial.requests = counted["accepted"]
            trial.server = {
                "made": made_count,
                "made_per_s": made_count / seconds,
                "accepted": counted["accepted"],
                "exceeded": counted["rejected"]["rate_limited"] + counted["rejected"]["blocked"],
                "overtaken": counted["rejected"]["invalid_nonce"],
                "lost": made_count - said["done"] - said["expired"] - said["dead_lettered"],
                "dead_lettered": said["dead_lettered"],
                "expired": said["expired"],
                "response_ms": said["response_ms"],
            }
    except (ValueError, KeyError, OSError, StartError) as error:
        trial.error = f"not measured: {error}"
    trial.say("{made} made, {lost} lost, {expired} expired, {exceeded} x 429, {overtaken} x 400")
    return trial


# --- No limit


def _unlimited(bench: Bench) -> list[Trial]:
    """Interleave weir and its peers; a job is a request for weir, and a function call for peers."""
    names = (IN_FILE, IN_MEMORY, *queues.PEERS)
    return [
        queues.trial(bench, name, number, UNLIMITED) if name in queues.PEERS else _echoed(bench, name, number)
        for number, name in _rounds(bench, names)
    ]


def _echoed(bench: Bench, name: str, number: int) -> Trial:
    more = ("--store", "memory") if name == IN_MEMORY else ()
    return echoed(bench, Trial(UNLIMITED, name, number), bench.plan.sent_jobs, *more)


def echoed(bench: Bench, trial: Trial, count: int, *more: str) -> Trial:
    """Send jobs at full speed from a file to a service that responds at once."""
    try:
        with served(bench, "httpbin") as server, scratch() as folder:
            command = [str(bench.programs["weir"]), "send", str(jobs(folder, count)), "--url", server.url + "echo"]
            command += ["-m", "GET", "--out", str(folder / "results.jsonl"), "--format", "json", "--quiet"]
            command += more
            trial.command = shown(command)
            finished = run(command, core=None, cost=bench.programs["cost"], seconds=120)
            said = summary(finished)
            counted = requests_served(server)
            fill(trial, finished, said)
            trial.requests = said["done"]
            trial.server = {"jobs_per_s": said["done"] / said["duration_s"], "served": counted}
            if said["done"] != count or counted < count:
                trial.error = f"{said['done']} of {count} done, and the service has counted {counted}"
    except (ValueError, KeyError, OSError, StartError) as error:
        trial.error = f"not measured: {error}"
    trial.say("{jobs_per_s:,.0f} jobs/s")
    return trial


def _late(bench: Bench, name: str, number: int) -> Trial:
    """Measure the lateness of sends: many keys, each of which may send every 10 ms."""
    seconds = bench.plan.late_s
    trial = Trial(LATE, name, number, asked_s=seconds)
    try:
        with served(bench, "httpbin") as server, scratch() as folder:
            keys = folder / "keys.txt"
            keys.write_text("\n".join(f"key-{key:03}" for key in range(LATE_KEYS)) + "\n")
            source = jobs(folder, LATE_MAX_PER_S * (seconds + 2))
            command = [str(bench.programs["weir"]), "send", str(source), "--url", f"{server.url}echo?key={{key}}"]
            command += ["-m", "GET", "--keys-file", str(keys), "--limit", "bucket:1/10ms", "--delay-bound", "0ms"]
            command += ["--format", "json", "--quiet"]
            if name == IN_MEMORY:
                command += ["--store", "memory"]
            trial.command = shown(command)
            finished = run(ended_after(seconds) + command, core=None, cost=bench.programs["cost"], seconds=seconds)
            said = summary(finished)
            fill(trial, finished, said)
            trial.requests = said["done"]
            trial.server = {"sends_per_s": said["done"] / said["duration_s"], "lateness_ms": said["lateness_ms"]}
    except (ValueError, KeyError, OSError, StartError) as error:
        trial.error = f"not measured: {error}"
    trial.say("{sends_per_s:,.0f} sends/s, late {lateness_ms}")
    return trial
