"""Job queues of Python's on Redis, with jobs that do nothing: how many a second the workers of one machine do."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.process import environment
from harness.programs import PEERS as FOLDER
from harness.programs import ROOT
from harness.sender import empty, say, scratch
from harness.servers import StartError, free_port
from harness.trial import Bench, Trial, shown

APPS = ROOT / "benches" / "peers" / "queues"
#: How the workers of each are started: a process for each core where it has processes, its own defaults otherwise.
PEERS: dict[str, tuple[str, ...]] = {
    "Celery": ("celery", "--app", "with_celery", "worker", "--loglevel", "ERROR", "--concurrency", "{cores}"),
    "Dramatiq": ("dramatiq", "with_dramatiq", "--processes", "{cores}"),
    "taskiq": ("taskiq", "worker", "with_taskiq:broker", "--workers", "{cores}", "--log-level", "ERROR"),
    "arq": ("arq", "with_arq.Worker"),
}
PATIENCE_S = 120


def python(name: str) -> Path:
    """The interpreter that has it; `benches/peers.sh` makes them."""
    return FOLDER / f"queue-{name.lower()}" / "bin" / "python"


def trial(bench: Bench, name: str, number: int, case: str) -> Trial:
    """All jobs are enqueued first, and their workers are ready: from the first that is done to the last."""
    count = bench.plan.peer_jobs
    result = empty(case, name, number, 0)
    try:
        if not python(name).exists() or "redis-server" not in bench.programs:
            raise ValueError("not on this machine")
        with scratch() as folder, _redis(bench.programs["redis-server"], folder) as port:
            marks = folder / "marks"
            marks.touch()
            known = {"QUEUES_PORT": str(port), "QUEUES_MARKS": str(marks), "PYTHONPATH": str(APPS)}
            enqueue = [str(python(name)), "-c", f"import with_{name.lower()} as app; app.enqueue({count})"]
            begun = time.monotonic()
            subprocess.run(enqueue, env=environment() | known, cwd=folder, check=True, capture_output=True)
            enqueued_s = time.monotonic() - begun
            worker = [str(python(name)), "-m", *(word.format(cores=os.cpu_count()) for word in PEERS[name])]
            result.command = shown(worker)
            done_s = _work(worker, environment() | known, folder, marks, count)
        result.requests = count
        result.server = {"jobs_per_s": count / done_s, "enqueued_per_s": count / enqueued_s}
        result.report = {"version": _version(name)}
    except (ValueError, OSError, StartError, subprocess.CalledProcessError) as error:
        result.error = f"not measured: {error}"
    say(result, "{jobs_per_s:,.0f} jobs/s, enqueued {enqueued_per_s:,.0f}/s")
    return result


def _work(command: list[str], environ: dict[str, str], folder: Path, marks: Path, count: int) -> float:
    """Each job that is done leaves a byte."""
    with (folder / "worker.log").open("w+") as log:
        worker = subprocess.Popen(
            command, env=environ, cwd=folder, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True
        )
        begun, deadline = None, time.monotonic() + PATIENCE_S
        try:
            while (done := marks.stat().st_size) < count:
                if done and begun is None:
                    begun = time.monotonic()
                if worker.poll() is not None or time.monotonic() > deadline:
                    log.seek(0)
                    raise ValueError(f"{done} of {count} done; {log.read().strip().splitlines()[-1:]}")
                time.sleep(0.001)
            return time.monotonic() - (begun or deadline)
        finally:
            os.killpg(worker.pid, signal.SIGKILL)
            worker.wait()


@contextmanager
def _redis(program: Path, folder: Path) -> Iterator[int]:
    port = free_port()
    command = [str(program), "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, env=environment())
    try:
        _await(program, port, process)
        yield port
    finally:
        process.terminate()
        process.wait()


def _await(program: Path, port: int, process: subprocess.Popen[bytes]) -> None:
    client = program.with_name("redis-cli")
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline and process.poll() is None:
        asked = subprocess.run([str(client), "-p", str(port), "ping"], capture_output=True, text=True, check=False)
        if asked.stdout.strip() == "PONG":
            return
        time.sleep(0.05)
    raise StartError("redis did not start")


def _version(name: str) -> str:
    asked = [str(python(name)), "-c", f"from importlib import metadata; print(metadata.version({name.lower()!r}))"]
    return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
