"""Loads of scripts on a disturbed machine: nothing is lost, and what was disturbed is said."""

import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import Service
from harness import noise
from programs import TIMEOUT_S, finished, started

import weir

START = "from weir import _script; _script.main()"

SHOP = """
import weir
class Shopper(weir.User):
    @weir.task
    async def browse(self):
        await self.get(f"/items/{self.number}", name="items")
        await self.get("/cart")
"""


def _until(what: str, condition: Callable[[], bool]) -> None:
    begun = time.monotonic()
    while not condition():
        assert time.monotonic() - begun < TIMEOUT_S, f"waited in vain for {what}"
        time.sleep(0.01)


def _run(folder: Path) -> weir.Run:
    return weir.Run.from_json((folder / "run.json").read_text())


def _steps(run: weir.Run) -> dict[str, int]:
    return {step.name: step.requests for step in run.steps}


@pytest.mark.parametrize("flags", [[], ["--processes", "2"]])
def test_a_load_that_stands_still_makes_up_for_it_and_says_so(
    service: Service, tmp_path: Path, flags: list[str]
) -> None:
    (tmp_path / "shop.py").write_text(SHOP)
    load = ["load", "-s", "shop.py", service.url, "--rate", "50", "-d", "3s", "-q", "--out", "run.json", *flags]
    with started(sys.executable, "-c", START, *load, cwd=tmp_path) as process:
        _until("the load to begin", lambda: len(service.seen) > 20)
        stopped = _children(process.pid)[:1] if flags else [process.pid]
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
        time.sleep(0.7)  # the noise itself
        for pid in stopped:
            os.kill(pid, signal.SIGCONT)
        _, err = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 0, err
    run = _run(tmp_path)
    assert run.iterations is not None
    # Each arrival was made, late or not.
    assert run.iterations.total + run.iterations.unfinished == 150
    assert run.iterations.dropped == 0
    seen = Counter(one.path.split("/")[1] for one in service.seen)
    assert _steps(run) == {"items": seen["items"], "GET /cart": seen["cart"]}
    assert seen["cart"] > 100
    assert not run.trust.ok
    late = [reason for reason in run.trust.reasons if "sent late" in reason]
    assert late
    assert all(reason.startswith("agent ") or "in step" in reason for reason in late) == bool(flags)
    assert not any("the script is the limit" in reason for reason in run.trust.reasons)


def _children(parent: int) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[1]) == parent:
                found.append(int(entry.name))
    return found


def test_stalls_of_the_load_lose_no_task_of_a_closed_loop(service: Service, tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(SHOP)
    load = ["load", "-s", "shop.py", service.url, "--users", "4", "--loops", "200", "-q", "--out", "run.json"]
    with (
        started(sys.executable, "-c", START, *load, cwd=tmp_path) as process,
        noise.stalls(process.pid, per_s=20, shortest_s=0.005, longest_s=0.02),
    ):
        _, err = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 0, err
    assert _steps(_run(tmp_path)) == {"items": 800, "GET /cart": 800}
    assert Counter(one.path for one in service.seen)["/cart"] == 800


@pytest.mark.parametrize("manner", ["refused", "silent", "unavailable"])
def test_users_outlive_an_outage_of_the_service(service: Service, tmp_path: Path, manner: str) -> None:
    text = """
import weir
class Shopper(weir.User):
    think = 0.01
    timeout = 0.3
    async def on_start(self):
        await self.post("/login")
    @weir.task
    async def browse(self):
        r = await self.get("/items", catch=True)
        if not r.ok:
            await weir.sleep(0.05)
    @weir.task
    async def look(self):
        await self.get("/look")
"""
    (tmp_path / "shop.py").write_text(text)
    with noise.relay(service.port) as relay:
        load = ["load", "-s", "shop.py", relay.url, "--users", "6", "-d", "10m", "-q", "--out", "run.json"]
        with started(sys.executable, "-c", START, *load, cwd=tmp_path) as process:
            _until("the load to begin", lambda: len(service.seen) > 50)
            relay.outage(manner)
            time.sleep(0.6)  # the noise itself
            relay.restore()
            after = len(service.seen)
            _until("users to go on", lambda: len(service.seen) > after + 50)
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=TIMEOUT_S)
    run = _run(tmp_path)
    assert process.returncode == 130, err
    assert run.requests.failed > 0, "there was an outage"
    # A request without a response raises nothing that the script has to catch here.
    assert "raised" not in err
    assert run.iterations is not None
    assert run.iterations.ok > 50
    assert sum(run.failures.values()) == run.requests.failed
    ok = Counter(one.path for one in service.seen)
    assert sum(step.ok for step in run.steps) <= sum(ok.values())


def test_a_neighbour_of_the_service_is_none_of_the_load(service: Service, tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(SHOP)
    other = ["load", f"{service.url}/other", "--rate", "100", "-d", "10m", "-q"]
    with started(sys.executable, "-c", START, *other, cwd=tmp_path) as neighbour:
        _until("the neighbour", lambda: len(service.seen) > 50)
        load = ["load", "-s", "shop.py", service.url, "--rate", "50", "-d", "2s", "-q", "--out", "run.json"]
        process = finished(sys.executable, "-c", START, *load, cwd=tmp_path)
        neighbour.send_signal(signal.SIGINT)
        neighbour.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 0, process.stderr
    seen = Counter(one.path.split("/")[1] for one in service.seen)
    run = _run(tmp_path)
    assert _steps(run) == {"items": seen["items"], "GET /cart": seen["cart"]}
    # On a slow machine the end of the run cuts off the last ones.
    assert run.iterations is not None
    assert run.iterations.total + run.iterations.unfinished == 100
    assert 0 < seen["cart"] <= 100


BUSY = """
import time
import weir
class Busy(weir.User):
    @weir.task
    async def browse(self):
        await self.get("/")
        end = time.monotonic() + 0.1
        while time.monotonic() < end:
            pass
"""


@pytest.mark.timed
@pytest.mark.parametrize(
    ("text", "flags"),
    [
        (BUSY, ["--users", "8", "-d", "3s"]),
        # It waits for something that is not a request.
        (BUSY.replace("            pass", "            time.sleep(0.001)"), ["--users", "8", "-d", "3s"]),
        (BUSY, ["--rate", "40", "-d", "3s"]),
        (BUSY, ["--users", "12", "-d", "3s", "--processes", "2"]),
    ],
)
def test_a_script_that_is_the_limit_is_named(service: Service, tmp_path: Path, text: str, flags: list[str]) -> None:
    (tmp_path / "busy.py").write_text(text)
    load: list[Any] = ["load", "-s", "busy.py", service.url, *flags, "-q", "--out", "run.json", "--strict"]
    process = finished(sys.executable, "-c", START, *load, cwd=tmp_path)
    assert process.returncode == 3, process.stderr
    reasons = _run(tmp_path).trust.reasons
    # On a busy machine its calls may be less than half of the time, and are then what late requests waited for.
    assert any("script" in reason and "its calls took" in reason for reason in reasons), reasons
    assert any("--processes" in reason for reason in reasons)
