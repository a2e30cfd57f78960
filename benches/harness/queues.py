"""Job queues for Python on Redis: throughput of the workers of one machine with empty jobs."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

from harness import redis_server
from harness.process import environment
from harness.programs import PEERS as FOLDER
from harness.programs import ROOT
from harness.sender import scratch
from harness.servers import StartError
from harness.trial import Bench, Trial, shown

APPS = ROOT / "benches" / "peers" / "queues"
#: Command of the workers of each: a process for each core if it has processes, its defaults otherwise.
PEERS: dict[str, tuple[str, ...]] = {
    "Celery": ("celery", "--app", "with_celery", "worker", "--loglevel", "ERROR", "--concurrency", "{cores}"),
    "Dramatiq": ("dramatiq", "with_dramatiq", "--processes", "{cores}"),
    "taskiq": ("taskiq", "worker", "with_taskiq:broker", "--workers", "{cores}", "--log-level", "ERROR"),
    "arq": ("arq", "with_arq.Worker"),
}
TIMEOUT_S = 120


def python(name: str) -> Path:
    """Return the interpreter that has the queue, installed by `benches/peers.sh`."""
    return FOLDER / f"queue-{name.lower()}" / "bin" / "python"


def trial(bench: Bench, name: str, number: int, case: str) -> Trial:
    """Measure the time from the first to the last completed job; all are enqueued before workers start."""
    count = bench.plan.peer_jobs
    result = Trial(case, name, number)
    try:
        if not python(name).exists() or "redis-server" not in bench.programs:
            raise ValueError("not on this machine")
        program = bench.programs["redis-server"]
        with scratch() as folder, redis_server.running(program, folder, *redis_server.NOTHING) as redis:
            marks = folder / "marks"
            marks.touch()
            known = {"QUEUES_PORT": str(redis.port), "QUEUES_MARKS": str(marks), "PYTHONPATH": str(APPS)}
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
    result.say("{jobs_per_s:,.0f} jobs/s, enqueued {enqueued_per_s:,.0f}/s")
    return result


def _work(command: list[str], environ: dict[str, str], folder: Path, marks: Path, count: int) -> float:
    """Run workers until all jobs are done; each appends a byte to `marks`. Return the seconds from the first one."""
    with (folder / "worker.log").open("w+") as log:
        worker = subprocess.Popen(
            command, env=environ, cwd=folder, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True
        )
        begun, deadline = None, time.monotonic() + TIMEOUT_S
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


def _version(name: str) -> str:
    asked = [str(python(name)), "-c", f"from importlib import metadata; print(metadata.version({name.lower()!r}))"]
    return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
