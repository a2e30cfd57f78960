"""The end of users: `on_stop`, with its requests."""

import os
import signal
import sys
from collections import Counter
from pathlib import Path

import pytest
from conftest import Service
from programs import TIMEOUT_S, finished, started

import weir

START = "from weir import _script; _script.main()"


def _paths(service: Service) -> Counter[str]:
    return Counter(one.path for one in service.seen)


def test_users_log_out_once_the_load_is_over(service: Service, capfd: pytest.CaptureFixture[str]) -> None:
    ended = []

    class Shopper(weir.User):
        think = 0.001

        async def on_start(self) -> None:
            await self.post("/login")

        @weir.task
        async def browse(self) -> None:
            try:
                await self.get("/items")
                await weir.sleep(0.05 if self.number else 1000)
            finally:
                ended.append(self.number)

        async def on_stop(self) -> None:
            await self.get("/cart")
            await weir.sleep(0.5)
            r = await self.get("/logout", name="logout")
            r.check(self.number != 1, "not out")
            if self.number == 2:
                raise KeyError("token")

    run = weir.load(Shopper, host=service.url, users=4, duration="3s")
    paths = _paths(service)
    assert (paths["/login"], paths["/cart"], paths["/logout"]) == (4, 4, 4)
    assert {one.path for one in service.seen[-4:]} == {"/logout"}
    # A task that the end has interrupted is left.
    assert ended.count(0) == 1
    steps = {step.name: (step.requests, step.failed) for step in run.steps}
    assert steps["logout"] == (4, 1)
    assert run.requests.total == sum(paths.values())
    # It is neither an iteration nor in the rate.
    assert run.iterations is not None
    assert run.iterations.total <= paths["/items"]
    assert run.duration_s == pytest.approx(3)
    assert run.rate_per_s.achieved == pytest.approx((run.requests.total - 8) / 3, abs=8 / 3)
    error = capfd.readouterr().err
    assert "Shopper.on_stop raised an exception once" in error


def test_users_of_several_processes_and_of_the_open_loop_log_out(service: Service, tmp_path: Path) -> None:
    text = """
import weir
class Shopper(weir.User):
    @weir.task
    async def browse(self):
        await self.get(f"/items/{self.number}")
    async def on_stop(self):
        await self.get(f"/logout/{self.number}", name="logout")
"""
    (tmp_path / "shop.py").write_text(text)
    for flags in (["--users", "5", "--loops", "2", "--processes", "2"], ["--rate", "50", "-d", "500ms"]):
        service.seen.clear()
        process = finished(
            sys.executable, "-c", START, "load", "-s", "shop.py", service.url, *flags, "-q", cwd=tmp_path
        )
        assert process.returncode == 0, process.stderr
        paths = _paths(service)
        users = {path.rpartition("/")[2] for path in paths}
        assert all(paths[f"/logout/{user}"] == 1 and paths[f"/items/{user}"] >= 1 for user in users), paths


LOCUSTFILE = """
import time
from locust import HttpUser, TaskSet, constant, task
class Forum(TaskSet):
    @task
    def read(self):
        try:
            self.client.get("/thread")
            time.sleep(1000)
        except Exception:
            print("not reached")
    def on_stop(self):
        self.client.get("/leave")
class Shopper(HttpUser):
    wait_time = constant(0)
    tasks = [Forum]
    def on_stop(self):
        time.sleep(0.01)
        self.client.get("/logout")
"""


def test_sets_of_tasks_end_before_their_user(service: Service, tmp_path: Path) -> None:
    pytest.importorskip("greenlet", reason="no greenlet; pip install 'weir-http[locust]'")
    (tmp_path / "shop.py").write_text(LOCUSTFILE)
    load = ["load", "-s", "shop.py", service.url, "--users", "3", "-d", "300ms", "-q"]
    process = finished(sys.executable, "-c", START, *load, cwd=tmp_path)
    assert process.returncode in {0, 3}, process.stderr
    assert "not reached" not in process.stdout
    assert _paths(service) == {"/thread": 3, "/leave": 3, "/logout": 3}
    assert {one.path for one in service.seen[:3]} == {"/thread"}
    assert service.seen[-1].path == "/logout"


def test_after_ctrl_c_nothing_is_sent(service: Service, tmp_path: Path) -> None:
    text = """
import weir
class Shopper(weir.User):
    think = 0.01
    @weir.task
    async def browse(self):
        await self.get("/items")
    async def on_stop(self):
        print("ended", flush=True)
        await self.get("/logout")
"""
    (tmp_path / "shop.py").write_text(text)
    load = ["load", "-s", "shop.py", service.url, "--users", "2", "-d", "1h", "-q"]
    with started(sys.executable, "-c", START, *load, cwd=tmp_path) as process:
        assert service.asked.wait(TIMEOUT_S)
        os.kill(process.pid, signal.SIGINT)
        out, _ = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 130
    assert out.count("ended") >= 1
    assert "/logout" not in _paths(service)


def test_an_end_that_does_not_end_is_cut_off(service: Service) -> None:
    class Endless(weir.User):
        @weir.task
        async def browse(self) -> None:
            await self.get("/items")

        async def on_stop(self) -> None:
            while True:
                await self.get("/again")
                await weir.sleep(0.05)

    run = weir.load(Endless, host=service.url, users=2, loops=1)
    assert 20 < _paths(service)["/again"] < 1000
    assert run.requests.failed == 0
