"""Locustfiles, unchanged: what they send, and what they print."""

import os
import shutil
import signal
import sys
from collections import Counter
from pathlib import Path

import pytest
from conftest import Service
from programs import TIMEOUT_S, finished, started

pytest.importorskip("greenlet", reason="no greenlet; pip install 'weir-http[locust]'")

START = "from weir import _script; _script.main()"


def _load(folder: Path, text: str, *args: str) -> tuple[int, str, str]:
    (folder / "locustfile.py").write_text(text)
    process = finished(sys.executable, "-c", START, "load", "-s", "locustfile.py", *args, cwd=folder)
    return process.returncode, process.stdout, process.stderr


SHOP = """
from locust import HttpUser, SequentialTaskSet, TaskSet, between, events, tag, task

class Forum(TaskSet):
    @task
    def read(self):
        self.client.get("/thread", params={"id": 1}, name="/thread")
        self.interrupt()

class Checkout(SequentialTaskSet):
    @task
    def cart(self):
        self.client.post("/cart", json={"item": 1})
    @task
    def pay(self):
        self.client.post("/pay", {"card": "1"})
        self.interrupt(reschedule=False)

class Shopper(HttpUser):
    wait_time = between(0.001, 0.002)
    host = "http://127.0.0.1:9"
    def on_start(self):
        self.client.headers["X-Shop"] = "yes"
        self.client.get("/login")
    def on_stop(self):
        self.client.get("/logout")
        print("logged out")
    tasks = {Forum: 2, Checkout: 1}
    @task(3)
    def index(self):
        r = self.client.get("/")
        assert (r.status_code, r.ok, r.text, r.content) == (200, True, "hello", b"hello")
        assert r.headers["content-length"] == "5"
        assert r.elapsed.total_seconds() > 0
        assert r.request.method == "GET"
"""


def test_sets_of_tasks_are_played(service: Service, tmp_path: Path) -> None:
    code, out, err = _load(tmp_path, SHOP, service.url, "--users", "2", "-n", "120")
    assert (code, err.count("raised")) == (0, 0), err
    seen = Counter((one.method, one.path) for one in service.seen)
    assert seen["GET", "/login"] == 2
    assert (seen["GET", "/logout"], out.count("logged out")) == (2, 2)
    # An interrupted sequence begins anew, and each ends with a payment.
    assert 0 <= seen["POST", "/cart"] - seen["POST", "/pay"] <= 2
    assert seen["GET", "/"] > seen["GET", "/thread?id=1"] > seen["POST", "/cart"] > 0
    assert all(one.headers["X-Shop"] == "yes" for one in service.seen)
    pay = next(one for one in service.seen if one.path == "/pay")
    assert (pay.body, pay.headers["Content-Type"]) == (b"card=1", "application/x-www-form-urlencoded")
    assert "/thread " in out
    assert "POST /cart" in out


CAUGHT = """
import json
from locust import HttpUser, constant, task
from locust.exception import ResponseError

class Checker(HttpUser):
    wait_time = constant(0)
    @task
    def check(self):
        with self.client.get("/a", catch_response=True) as r:
            if r.text != "other":
                r.failure("not other: " + r.text)
        with self.client.get("/status?code=404", name="missing", catch_response=True) as r:
            r.success()
        with self.client.get("/b", catch_response=True) as r:
            raise ResponseError("raised")
        with self.client.get("/c", catch_response=True) as r:
            with self.client.get("/status?code=404", name="inner", catch_response=True) as inner:
                self.client.get("/d")
                inner.success()
            self.client.get("/d")
            r.failure("late")
        with self.client.get("/status?code=404", name="undecided", catch_response=True) as r:
            self.client.get("/d")
        self.client.get("/d")
        r = self.client.get("/close")
        assert (r.status_code, r.ok) == (0, False)
        try:
            self.client.get("/status?code=500", name="broken").raise_for_status()
        except OSError as error:
            assert "500 Server Error" in str(error), error
        {}["missing"]
"""


def test_failures_are_those_of_the_file(service: Service, tmp_path: Path) -> None:
    code, _, err = _load(tmp_path, CAUGHT, service.url, "--users", "1", "-n", "2", "--out", "run.json")
    assert code == 3, err
    run = __import__("weir").Run.from_json((tmp_path / "run.json").read_text())
    failed = {step.name: (step.requests, step.failed) for step in run.steps}
    assert failed == {
        "GET /a": (2, 2),
        "missing": (2, 0),
        "GET /b": (2, 2),
        "GET /c": (2, 2),
        "GET /d": (8, 0),
        "inner": (2, 0),
        "undecided": (2, 2),
        "GET /close": (2, 2),
        "broken": (2, 2),
    }
    reasons = {step.name: [sample.reason for sample in step.samples] for step in run.steps}
    assert "not other: hello" in reasons["GET /a"][0]
    assert "raised" in reasons["GET /b"][0]
    # Decided after another request, and counted at its own.
    assert reasons["GET /c"][0] == "late"
    assert sum(run.failures.values()) == run.requests.failed == 12
    assert "Checker.check raised an exception twice" in err or "Checker.check raised an exception 2 times" in err
    assert "locustfile.py" in err
    assert "KeyError: 'missing'" in err


CHAIN = """
from locust import FastHttpUser, MarkovTaskSet, constant, task, transition, transitions

class Chain(MarkovTaskSet):
    @transition("second")
    def first(self):
        self.client.get("/first")
    @transitions({"first": 1})
    def second(self):
        with self.rest("POST", "/second", json={"a": 1}) as r:
            assert r.js is None

    def rest(self, *args, **given):
        return self.user.rest(*args, **given)

class Walker(FastHttpUser):
    wait_time = constant(0)
    tasks = [Chain]
"""


def test_chains_and_json_interfaces(service: Service, tmp_path: Path) -> None:
    code, out, err = _load(tmp_path, CHAIN, service.url, "--users", "1", "-n", "6")
    assert code == 0, err
    assert [one.path for one in service.seen] == ["/first", "/second"] * 3
    second = service.seen[1]
    assert [second.headers[name] for name in ("Content-Type", "Accept")] == ["application/json"] * 2
    assert "the body is not JSON" in out


EVENTS = """
from locust import HttpUser, constant, events, task, LoadTestShape

@events.init_command_line_parser.add_listener
def _(parser):
    parser.add_argument("--color", default="red")

@events.init.add_listener
def _(environment, **_):
    print("init", environment.host)

@events.test_start.add_listener
def _(environment, **_):
    print("start", environment.parsed_options.color)

told = []

@events.request.add_listener
def _(request_type, name, response_time, response_length, exception, **_):
    told.append((request_type, name, response_length, exception is None))

@events.quitting.add_listener
def _(environment, **_):
    print("quitting", len(told), sorted(set(told)), environment.stats.total.num_requests)
    environment.process_exit_code = 7

class One(HttpUser):
    wait_time = constant(0)
    @task
    def a(self):
        self.client.get("/a", name="named")
        with self.client.get("/status?code=404", name="missing", catch_response=True) as r:
            r.success()
"""


def test_listeners_are_told_and_set_the_exit_code(service: Service, tmp_path: Path) -> None:
    code, out, err = _load(tmp_path, EVENTS, service.url, "--users", "1", "-n", "3", "--", "--color", "blue")
    assert code == 7, err
    assert f"init {service.url}" in out
    assert "start blue" in out
    assert "quitting 6 [('GET', 'missing', 5, True), ('GET', 'named', 5, True)] 6" in out


SHAPE = """
from locust import HttpUser, LoadTestShape, constant, task

class Steps(LoadTestShape):
    def tick(self):
        t = self.get_run_time()
        return None if t >= 6 else (1, 1) if t < 3 else (4, 10)

class One(HttpUser):
    wait_time = constant(0.02)
    def on_start(self):
        self.client.get("/start")
    @task
    def a(self):
        self.client.get("/a")
"""


def test_a_shape_sets_the_number_of_users_and_the_end(service: Service, tmp_path: Path) -> None:
    code, out, err = _load(tmp_path, SHAPE, service.url, "--out", "run.json")
    assert code == 0, err
    assert "4 users" in out
    run = __import__("weir").Run.from_json((tmp_path / "run.json").read_text())
    assert run.duration_s > 5.7
    paths = [one.path for one in service.seen]
    assert paths.count("/start") == 4
    # The second user comes at three seconds.
    assert [index for index, path in enumerate(paths) if path == "/start"][1] > 5


TAGS = """
from locust import HttpUser, constant, tag, task

class One(HttpUser):
    wait_time = constant(0)
    @tag("a", "x")
    @task
    def a(self):
        self.client.get("/a")
    @tag("b")
    @task
    def b(self):
        self.client.get("/b")
    @task
    def c(self):
        self.client.get("/c")
"""


@pytest.mark.parametrize(
    ("flags", "paths"),
    [(["--tags", "a", "--tags", "b"], {"/a", "/b"}), (["--exclude-tags", "x"], {"/b", "/c"})],
)
def test_tags_choose_tasks(service: Service, tmp_path: Path, flags: list[str], paths: set[str]) -> None:
    code, _, err = _load(tmp_path, TAGS, service.url, "--users", "1", "-n", "40", *flags)
    assert code == 0, err
    assert {one.path for one in service.seen} == paths


def test_an_open_loop_takes_free_users(service: Service, tmp_path: Path) -> None:
    code, out, err = _load(tmp_path, TAGS, service.url, "--rate", "100", "-d", "0.5s")
    assert code == 0, err
    # A busy machine may leave the last ones out.
    assert 40 <= len(service.seen) <= 50
    assert "open loop" in out


def test_ctrl_c_keeps_the_result(service: Service, tmp_path: Path) -> None:
    (tmp_path / "locustfile.py").write_text(TAGS)
    command = (sys.executable, "-c", START, "load", "-s", "locustfile.py", service.url, "--users", "1", "-d", "1h")
    with started(*command, "--out", "run.json", cwd=tmp_path) as process:
        assert service.asked.wait(TIMEOUT_S)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 130
    assert "requests " in out
    assert (tmp_path / "run.json").exists()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("import no_such_module", ["line 1", "ModuleNotFoundError", "cannot be imported"]),
        ("def f(:", ["locustfile.py", "not valid Python (line 1)"]),
        ("x = 1", ["no class of users"]),
        ("from locust.contrib.mqtt import MqttUser", ["line 1", "locust.contrib.mqtt"]),
        ("from gevent import pool", ["line 1", "gevent.pool is not there"]),
        ("from locust import HttpUser, task\nclass A(HttpUser):\n    @task\n    def a(self): pass", ["has a host"]),
    ],
)
def test_a_file_that_cannot_be_played_is_named(tmp_path: Path, text: str, words: list[str]) -> None:
    code, _, err = _load(tmp_path, text)
    assert code == 2
    assert all(word in err for word in words), err
    assert err.rstrip().splitlines()[-1].startswith("weir: ")


def test_flags_of_scenarios_do_not_go_with_a_script(service: Service, tmp_path: Path) -> None:
    for flag in (["--check", "status == 200"], ["--think", "1s"], ["-t", "2"], ["-m", "PUT"], ["--on", "auto"]):
        code, _, err = _load(tmp_path, TAGS, service.url, *flag)
        assert (code, "cannot be used with a Python script" in err) == (2, True), err
    assert not service.seen


def test_the_program_starts_the_interpreter_beside_it(service: Service, tmp_path: Path) -> None:
    program = os.environ.get("WEIR_BINARY") or shutil.which("weir", path=str(Path(sys.executable).parent))
    if program is None:
        pytest.skip("no program weir beside the interpreter")
    (tmp_path / "locustfile.py").write_text(TAGS)
    with started(
        program, "load", "-s", "locustfile.py", service.url, "--users", "1", "-n", "5", cwd=tmp_path,
        env={**os.environ, "WEIR_PYTHON": sys.executable},
    ) as process:  # fmt: skip
        _, err = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 0, err
    assert len(service.seen) == 5
