"""Throughput and cost of the store of `weir send`: durable submits, a million jobs, an empty queue."""

from __future__ import annotations

import json
import re
import sqlite3
import subprocess
import time
from pathlib import Path

from harness import footprint
from harness.process import environment, run
from harness.sender import jobs, scratch, served
from harness.servers import StartError
from harness.trial import Bench, Trial, shown

STORE = "the store"
IDLE, KEPT = "an empty queue", "jobs on disk"
IDLE_S = 10
#: Name in the output of `benches/store.rs`.
SUBMIT = "submit, 16 x batches of {batch}, {under_way} in flight"
SUBMITS = ((1, 1), (1, 64), (10, 1), (100, 1))
TIMEOUT_S = 120


def measure(bench: Bench) -> list[Trial]:
    """Measure the store alone, and senders with an empty queue and with a million jobs."""
    return [_alone(bench), _idle(bench), _kept(bench)]


def _alone(bench: Bench) -> Trial:
    count = bench.plan.kept_jobs
    trial = Trial(STORE, STORE, 0)
    try:
        if "store" not in bench.programs:
            raise ValueError("the program could not be built")
        with scratch() as folder:
            command = [str(bench.programs["store"]), str(count), str(folder)]
            trial.command = shown(command)
            finished = run(command, core=None, cost=bench.programs["cost"], seconds=600)
        if finished.status:
            raise ValueError(finished.stderr.strip().splitlines()[-1])
        rates = re.findall(r"^(.+): (\d+)/s, ([\d.]+) us of CPU each", finished.stdout, re.MULTILINE)
        reopen = re.search(r"^reopen \d+ jobs.*: ([\d.]+) ms$", finished.stdout, re.MULTILINE)
        trial.requests, trial.max_rss_mb = count, finished.max_rss_mb
        trial.server = {
            "per_s": {what: float(rate) for what, rate, _ in rates},
            "cpu_us": {what: float(cpu) for what, _, cpu in rates},
            "reopen_ms": float(reopen.group(1)) if reopen else None,
            "jobs": count,
        }
    except (ValueError, IndexError, OSError) as error:
        trial.error = f"not measured: {error}"
    trial.say("{per_s}, reopened in {reopen_ms} ms")
    return trial


def _idle(bench: Bench) -> Trial:
    trial = Trial(IDLE, "weir send", 0, asked_s=IDLE_S)
    with scratch() as folder:
        command = [str(bench.programs["weir"]), "send", "-", "--url", "http://127.0.0.1:9/", "--store"]
        command += [str(folder / "jobs.db"), "--quiet"]
        trial.command = shown(command)
        with _started(command, stdin=subprocess.PIPE) as process:
            time.sleep(1)
            before = footprint.spent(process.pid)
            time.sleep(IDLE_S)
            spent = footprint.cpu_s(before, footprint.spent(process.pid))
            trial.server = {"cpu_share": spent / IDLE_S, "resident_mb": footprint.resident_mb(process.pid)}
            process.terminate()
    trial.say("{cpu_share:.3%} of a core, {resident_mb:.0f} MB")
    return trial


def _kept(bench: Bench) -> Trial:
    """Measure a sender that is not allowed to send while jobs are submitted; then the start of the next sender."""
    count = bench.plan.kept_jobs
    trial = Trial(KEPT, "weir send", 0)
    try:
        with scratch() as folder:
            log = folder / "access.jsonl"
            with served(bench, "httpbin", "--access-log", str(log)) as server:
                weir, store = str(bench.programs["weir"]), folder / "jobs.db"
                send = [weir, "send", str(jobs(folder, count)), "--url", server.url + "echo", "-m", "GET"]
                send += ["--store", str(store), "--quiet", "--limit", "1/1h", "--key", "waits"]
                trial.command = shown(send)
                begun = time.monotonic()
                with _started(send) as process:
                    _until_kept(process, store, count)
                    took_s = time.monotonic() - begun
                    peak_mb = _peak_mb(process.pid)
                    process.terminate()
                first = len(log.read_text().splitlines())
                again = [weir, "send", "-", "--url", server.url, "--store", str(store), "--quiet"]
                begun = time.time()
                with _started([*again, "--key", "goes"], stdin=subprocess.DEVNULL) as process:
                    at = _first_request(log, first)
                    process.terminate()
            trial.requests, trial.max_rss_mb = count, peak_mb
            trial.server = {"jobs": count, "jobs_per_s": count / took_s, "reopen_s": at - begun, "peak_mb": peak_mb}
    except (ValueError, KeyError, OSError, StartError) as error:
        trial.error = f"not measured: {error}"
    trial.say("{jobs:,} jobs: {peak_mb:.0f} MB, reopened in {reopen_s:.2f} s")
    return trial


def _started(command: list[str], stdin: int | None = None) -> subprocess.Popen[bytes]:
    return subprocess.Popen(command, stdin=stdin, stdout=subprocess.DEVNULL, env=environment())


def _until_kept(process: subprocess.Popen[bytes], store: Path, count: int) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.1)
        try:
            with sqlite3.connect(f"file:{store}?mode=ro", uri=True) as connection:
                (kept,) = connection.execute("SELECT max(number) FROM job").fetchone()
        except sqlite3.Error:  # not created yet
            continue
        if (kept or 0) >= count:
            return
    raise ValueError(f"{count:,} jobs were not submitted")


def _first_request(log: Path, before: int) -> float:
    """Wait for a new line in the log; return the Unix time of the request, in seconds."""
    deadline = time.monotonic() + TIMEOUT_S
    while time.monotonic() < deadline:
        lines = log.read_text().splitlines()[before:]
        if lines:
            return float(json.loads(lines[0])["time"])
        time.sleep(0.02)
    raise ValueError("the next sender sent nothing")


def _peak_mb(pid: int) -> float:
    found = re.search(r"^VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    return int(found.group(1)) / 1024 if found else float("nan")
