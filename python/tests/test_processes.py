"""Classes of users in several processes: the same requests as in one, and one result."""

import json
import os
import re
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import Service
from programs import TIMEOUT_S, finished, started

import weir

START = "from weir import _script; _script.main()"

SHOP = """
import weir

class Shopper(weir.User):
    weight = 3
    async def on_start(self):
        await self.post("/login", json={"user": self.number})

    @weir.task(3)
    async def browse(self):
        r = await self.get(f"/items/{self.number}/{self.random.randint(1, 1000)}", name="items")
        r.check(not self.random.random() < 0.2, "unlucky")

    @weir.task
    async def buy(self):
        await self.post(f"/cart/{self.number}", name="cart")
        if self.random.random() < 0.5:
            raise KeyError("token")

class Writer(weir.User):
    @weir.task
    async def write(self):
        await self.put(f"/texts/{self.number}", data="x", name="write")

class Admin(weir.User):
    fixed_count = 1
    @weir.task
    async def look(self):
        await self.get("/admin")
"""


def _load(folder: Path, text: str, *args: str) -> tuple[int, str, str]:
    (folder / "shop.py").write_text(text)
    process = finished(sys.executable, "-c", START, "load", "-s", "shop.py", *args, cwd=folder)
    return process.returncode, process.stdout, process.stderr


def _run(folder: Path, text: str, *args: str) -> tuple[weir.Run, str]:
    code, _, err = _load(folder, text, *args, "--out", "run.json", "-q")
    assert code in {0, 3}, err
    return weir.Run.from_json((folder / "run.json").read_text()), err


def _story(run: weir.Run) -> Any:
    """Figures that depend on the seed alone."""
    return (
        sorted((step.name, step.scenario, step.requests, step.failed) for step in run.steps),
        [(scenario.name, scenario.iterations, scenario.failed) for scenario in run.scenarios],
    )


def _until(what: str, condition: Callable[[], bool]) -> None:
    begun = time.monotonic()
    while not condition():
        assert time.monotonic() - begun < TIMEOUT_S, f"waited in vain for {what}"
        time.sleep(0.02)


def _agents(parent: int) -> list[int]:
    """Processes that a process has started as agents."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            ancestor = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            if ancestor == parent and (entry / "cmdline").read_bytes().endswith(b"\0agent-process\0"):
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def test_several_processes_send_what_one_sends(service: Service, tmp_path: Path) -> None:
    flags = [service.url, "--users", "8", "--loops", "6", "--seed", "5"]
    alone, err = _run(tmp_path, SHOP, *flags)
    seen = Counter((one.method, one.path, one.body) for one in service.seen)
    assert len(alone.scenarios) == 3
    assert alone.scenarios[2].iterations == 6
    times = re.findall(r"Shopper.buy raised an exception (.*); the first", err)
    assert len(times) == 1
    for flag in (["--processes", "2"], ["--processes", "3"], ["--on", "local", "--agents", "3"]):
        service.seen.clear()
        run, err = _run(tmp_path, SHOP, *flags, *flag)
        assert Counter((one.method, one.path, one.body) for one in service.seen) == seen
        assert _story(run) == _story(alone)
        assert [len(run.agents), sum(agent.requests for agent in run.agents)] == [int(flag[-1]), run.requests.total]
        # All exceptions are counted, and printed once.
        assert re.findall(r"Shopper.buy raised an exception (.*); the first", err) == times
        assert err.count("Traceback") == 1
        samples = [sample for step in run.steps for sample in step.samples]
        assert any("unlucky" in sample.reason for sample in samples)


def test_tasks_and_arrivals_are_divided(service: Service, tmp_path: Path) -> None:
    run, _ = _run(tmp_path, SHOP, service.url, "--users", "8", "-n", "31", "--processes", "2")
    assert run.iterations is not None
    assert run.iterations.total == 31
    run, _ = _run(tmp_path, SHOP, service.url, "--rate", "40", "-d", "1s", "--processes", "2")
    assert run.iterations is not None
    assert (run.iterations.total + run.iterations.unfinished, len(run.agents)) == (40, 2)
    assert all(agent.requests >= 15 for agent in run.agents)
    run, _ = _run(tmp_path, SHOP, service.url, "--users", "1", "-n", "3", "--processes", "auto")
    assert run.requests.total >= 3


EVENTS = """
from locust import HttpUser, constant, events, task

def tell(name, environment):
    runner = environment.runner
    total = environment.stats.total.num_requests
    print(name, type(runner).__name__, getattr(runner, "worker_index", "-"), total, flush=True)

events.init.add_listener(lambda environment, **_: tell("init", environment))
events.test_start.add_listener(lambda environment, **_: tell("start", environment))
events.test_stop.add_listener(lambda environment, **_: tell("stop", environment))

@events.quitting.add_listener
def judge(environment, **_):
    if environment.stats.total.num_requests == 8:
        environment.process_exit_code = 7

class User(HttpUser):
    wait_time = constant(0)
    @task
    def a(self):
        self.client.get("/a")
"""


def test_listeners_are_called_in_each_process(service: Service, tmp_path: Path) -> None:
    pytest.importorskip("greenlet", reason="no greenlet; pip install 'weir-http[locust]'")
    code, out, err = _load(tmp_path, EVENTS, service.url, "--users", "2", "--loops", "4", "--processes", "2")
    assert code == 7, err
    own = [line for line in out.splitlines() if "Runner" in line]
    assert own == ["init MasterRunner - 0", "start MasterRunner - 0", "stop MasterRunner - 8"]
    for agent in (1, 2):
        lines = [line for line in err.splitlines() if line.startswith(f"agent {agent}: ")]
        told = [f"{event} WorkerRunner {agent - 1} 0" for event in ("init", "start", "stop")]
        assert lines == [f"agent {agent}: {line}" for line in told]


def test_a_process_that_is_killed_ends_the_run_and_its_requests_count(service: Service, tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(SHOP)
    args = ["load", "-s", "shop.py", service.url, "--rate", "100", "-d", "10m", "--processes", "2", "--out", "run.json"]
    with started(sys.executable, "-c", START, *args, "-q", cwd=tmp_path) as process:
        _until("some seconds of load", lambda: len(service.seen) > 250)
        agents = _agents(process.pid)
        assert len(agents) == 2
        os.kill(agents[0], signal.SIGKILL)
        _, err = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 3, err
    assert "was lost: killed (signal 9)" in err
    run = weir.Run.from_json((tmp_path / "run.json").read_text())
    assert not run.trust.ok
    assert run.requests.ok > 100
    assert not any(Path(f"/proc/{agent}").exists() for agent in agents)


def test_ctrl_c_ends_all_processes_and_keeps_the_result(service: Service, tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(SHOP)
    args = ["load", "-s", "shop.py", service.url, "--users", "4", "-d", "10m", "--processes", "2", "--out", "run.json"]
    with started(sys.executable, "-c", START, *args, "-q", cwd=tmp_path) as process:
        _until("requests of the load", lambda: len(service.seen) > 50)
        agents = _agents(process.pid)
        os.kill(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 130, err
    run = weir.Run.from_json((tmp_path / "run.json").read_text())
    assert run.interrupted
    assert run.requests.total > 50
    assert "Shopper.buy raised an exception" in err
    assert not any(Path(f"/proc/{agent}").exists() for agent in agents)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("import nothing_like_this\n", "shop.py cannot be imported: line 1 needs the module nothing_like_this"),
        # Only where a process is told its number.
        ("import weir\nif weir._processes.is_agent():\n    1 / 0\n" + SHOP, "shop.py cannot be imported: ZeroDivision"),
    ],
)
def test_a_file_that_cannot_be_imported_is_one_traceback_and_one_line(
    service: Service, tmp_path: Path, text: str, words: str
) -> None:
    code, _, err = _load(tmp_path, text, service.url, "--users", "4", "--processes", "2", "-q")
    assert code == 2, err
    assert err.count("Traceback") <= 1, err
    lines = [line for line in err.splitlines() if line.startswith("weir: ")]
    assert len(lines) == 1, err
    assert words in lines[0]
    assert not service.seen


def test_a_breakpoint_names_the_remedy(service: Service, tmp_path: Path) -> None:
    text = "import weir\nclass U(weir.User):\n    @weir.task\n    async def a(self):\n        breakpoint()\n"
    _, _, err = _load(tmp_path, text, service.url, "--users", "2", "--loops", "1", "--processes", "2", "-q")
    assert "breakpoint() needs a load in one process" in err


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--processes", "0"], "write a number from 1 to 1000, or auto"),
        (["--processes", "5", "--users", "4"], "5 processes cannot share 4 users"),
        (["--processes", "2", "--on", "local"], "--processes and --on cannot be combined"),
        (["--on", "auto"], "write --processes N"),
        (["--processes", "2", "--jtl", "log"], "--jtl"),
    ],
)
def test_flags_that_do_not_fit_are_an_error(service: Service, tmp_path: Path, flags: list[str], words: str) -> None:
    code, _, err = _load(tmp_path, SHOP, service.url, *flags)
    assert code == 2
    assert words in err
    assert not service.seen


def test_processes_need_a_script(service: Service, tmp_path: Path) -> None:
    process = finished(sys.executable, "-c", START, "load", service.url, "--processes", "2", cwd=tmp_path)
    assert (process.returncode, "--processes needs a Python script" in process.stderr) == (2, True)


PROGRAM = """
import sys
import shop
import weir

class Own(weir.User):
    @weir.task
    async def a(self):
        await self.get(f"/own/{self.number}", name="own")

def run():
    run = weir.load([shop.Shopper, Own], host=sys.argv[1], users=8, loops=4, processes=2)
    print(len(run.agents), run.iterations.total, sorted(step.name for step in run.steps))

"""


def test_classes_of_files_run_in_several_processes(service: Service, tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(SHOP)
    (tmp_path / "program.py").write_text(PROGRAM + "if __name__ == '__main__':\n    run()\n")
    process = finished(sys.executable, "program.py", service.url, cwd=tmp_path)
    assert process.stdout.startswith("2 32 "), process.stderr
    assert "'own'" in process.stdout
    assert "Shopper.buy raised an exception" in process.stderr


def test_a_call_that_other_processes_would_repeat_names_the_remedy(service: Service, tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(SHOP)
    (tmp_path / "program.py").write_text(PROGRAM + "run()\n")
    process = finished(sys.executable, "program.py", service.url, cwd=tmp_path)
    assert process.returncode == 1
    assert "put the call under if __name__ == '__main__':" in process.stderr
    assert not service.seen


def test_classes_that_no_other_process_can_import_are_an_error(service: Service) -> None:
    class Inner(weir.User):
        @weir.task
        async def a(self) -> None:
            await self.get("/")

    with pytest.raises(weir.UsageError, match="write the class at the top of its file"):
        weir.load(Inner, host=service.url, users=2, processes=2)
    with pytest.raises(weir.UsageError, match="invalid number 0"):
        weir.load(Inner, host=service.url, users=2, processes=0)
    with pytest.raises(weir.UsageError, match="cannot be combined"):
        weir.load(Inner, host=service.url, users=2, processes=2, on="local")
    with pytest.raises(weir.UsageError, match="processes is for classes"):
        weir.load(service.url, processes=2)
    code = "import sys, weir\nclass U(weir.User):\n    @weir.task\n    async def a(self): pass\n"
    call = "weir.load(U, host=sys.argv[1], users=2, processes=2)"
    process = finished(sys.executable, "-c", code + call, service.url)
    assert "U is not in a file" in process.stderr
    assert not service.seen


def test_a_search_has_scripts(service: Service, tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(SHOP)
    search = ["--slo", "p99<5s", "--slo", "errors<90%", "--from", "20", "--to", "20", "--step-time", "3s", "-f", "json"]
    command = ["capacity", "-s", "shop.py", service.url, *search, "-q"]
    process = finished(sys.executable, "-c", START, *command, cwd=tmp_path)
    assert process.returncode < 2, process.stderr
    found = json.loads(process.stdout)
    assert found["steps"][0]["outcome"] in {"passes", "inconclusive"}
    assert process.stderr.count("Shopper.buy raised an exception") == 1


@pytest.mark.parametrize("flags", [[], ["--processes", "2"]])
def test_objectives_may_name_classes_and_steps(service: Service, tmp_path: Path, flags: list[str]) -> None:
    load = [service.url, "--users", "4", "--loops", "2", "-q", *flags]
    code, _, err = _load(tmp_path, SHOP, *load, "--slo", "items: p99<60s", "--slo", "Admin: errors<1%")
    assert code == 0, err
    for missed in ("items: p99<1us", "no-such-step: p99<60s"):
        code, _, _ = _load(tmp_path, SHOP, *load, "--slo", missed)
        assert code == 1
