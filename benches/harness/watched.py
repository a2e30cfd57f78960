"""Watched loads: what the live page and the outputs cost the load that they show, and how long a page takes to draw."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.generators import Generator, Load, read_weir, weir
from harness.process import pinned, run
from harness.programs import ROOT, SCRIPTS
from harness.servers import Server, free_port, nginx
from harness.trial import Bench, Trial, rounds, shown

CONNECTIONS, RATE = 100, 2_000
CLOSED, OPEN = f"closed loop, {CONNECTIONS} connections", f"open loop, {RATE:,} requests/s"
PLAIN, NO_PAGE, PAGE, PAGES = "weir", "weir --web, no page", "weir --web, one page", "weir --web, 20 pages"
LINES, STATSD, SCRAPE = "weir --out-jsonl", "weir --out-statsd", "weir --out-prometheus PORT"
#: Flags of each, and the number of pages; {port} is a free port, {folder} one of the trial.
CONTENDERS: dict[str, tuple[tuple[str, ...], int]] = {
    PLAIN: ((), 0),
    NO_PAGE: (("--web=127.0.0.1:{port}", "--web-token={token}"), 0),
    PAGE: (("--web=127.0.0.1:{port}", "--web-token={token}"), 1),
    PAGES: (("--web=127.0.0.1:{port}", "--web-token={token}"), 20),
    LINES: (("--out-jsonl={folder}/intervals.jsonl",), 0),
    STATSD: (("--out-statsd=127.0.0.1:{port}",), 0),
    SCRAPE: (("--out-prometheus=127.0.0.1:{port}",), 0),
}
#: Rounds of the closed loop per round of the open loop: its system time varies more between runs than a page costs.
CLOSED_ROUNDS = 4
TOKEN = "watched-by-benchmarks"
DRAWN, CHROMIUM = "10,000 intervals and 50 steps", "Chromium"


def measure(bench: Bench) -> list[Trial]:
    """Measure interleaved rounds of both loops at nginx, then a page in Chromium."""
    plan, trials = bench.plan, []
    if "nginx" in bench.programs:
        loads = {
            CLOSED: Load("", plan.closed_s, Path(), connections=CONNECTIONS),
            OPEN: Load("", plan.open_s, Path(), connections=CONNECTIONS, rate_per_s=RATE),
        }
        with nginx(bench.programs["nginx"], bench.server_core) as server:
            for case, times in ((CLOSED, CLOSED_ROUNDS), (OPEN, 1)):
                for number, name in rounds(list(CONTENDERS), times * plan.pairs, plan.seed):
                    trials.append(_trial(bench, server, loads[case], name=name, case=case, number=number))
    if shutil.which("chromium"):
        trials += [_drawn(bench, number) for number in range(plan.pairs)]
    return trials


def _trial(bench: Bench, server: Server, load: Load, *, name: str, case: str, number: int) -> Trial:
    flags, pages = CONTENDERS[name]
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="weir-watched-") as folder, _spectators(bench, port, pages):
        more = [flag.format(port=port, token=TOKEN, folder=folder) for flag in flags]
        generator = Generator(name, bench.programs["weir"], lambda load: [*weir(load), *more], read_weir)
        return bench.measure(generator, server, load, case=case, round_=number)


@contextmanager
def _spectators(bench: Bench, port: int, pages: int) -> Iterator[None]:
    if not pages:
        yield
        return
    command = [sys.executable, str(SCRIPTS / "spectators.py"), str(port), str(pages), TOKEN]
    with subprocess.Popen(pinned(command, bench.server_core)) as process:
        try:
            yield
        finally:
            process.kill()


def _drawn(bench: Bench, number: int) -> Trial:
    """Time the drawing of a page in Chromium; the cost of the trial is that of the script that drives it."""
    command = [sys.executable, str(ROOT / "benches" / "scripts" / "draw_live.py"), str(bench.programs["weir"])]
    finished = run(command, core=None, cost=bench.programs["cost"], seconds=60)
    trial = Trial(DRAWN, CHROMIUM, number, shown(command), 0, None, 1, 0.0, 0.0, finished.max_rss_mb)
    try:
        trial.server = {"redraw_ms": float(finished.stdout)}
    except ValueError:
        lines = finished.stderr.strip().splitlines()
        trial.error = f"exit {finished.status}: {lines[-1] if lines else 'no message'}"
    return trial
