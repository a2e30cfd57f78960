"""Names of classes of users: all but those of the interface are the file's own."""

import sys
from pathlib import Path

import pytest
from conftest import Service
from programs import finished

import weir

START = "from weir import _script; _script.main()"

LOCUST_NAMES = {
    *("abstract", "client", "context", "environment", "fixed_count", "group", "host", "max_wait", "min_wait"),
    *("on_start", "on_stop", "stop", "tasks", "wait", "wait_function", "wait_time", "weight"),
    *("pool_manager", "client_pool", "concurrency", "connection_timeout", "default_headers", "insecure"),
    *("max_redirects", "max_retries", "network_timeout", "proxy_host", "proxy_port", "rest", "rest_"),
}
"""Public names of users that Locust's documentation has."""

TASK_SET_NAMES = {
    *("client", "execute_task", "get_next_task", "interrupt", "max_wait", "min_wait", "on_start", "on_stop", "parent"),
    *("run", "schedule_task", "tasks", "user", "wait", "wait_function", "wait_time"),
}

NAMES = [
    *("user", "number", "random", "session", "seed", "main", "player", "name", "id", "url", "errors", "state", "run"),
    *("parent", "factory", "driver", "index", "think", "timeout", "headers", "environ", "stats", "hook", "head"),
    *(
        "_user",
        "_main",
        "_random",
        "_number",
        "_session",
        "_player",
        "_begun_s",
        "_paced_s",
        "_wait",
        "_choose",
        "_form",
    ),
    *(
        "_stream",
        "_quick",
        "_prepare",
        "_play",
        "_end_task",
        "_next_task",
        "_default_headers",
        "_given_lines",
        "_owner",
    ),
]

LOCUSTFILE = """
from locust import FastHttpUser, HttpUser, SequentialTaskSet, TaskSet, between, constant_pacing, task

NAMES = {names!r}

class Inner(TaskSet):
    def on_start(self):
        for name in NAMES:
            if name not in ("user", "parent", "_user", "_parent", "run"):
                setattr(self, name, "x")
    @task
    def inner(self):
        self.client.get("/inner")
        self.interrupt()

class Steps(SequentialTaskSet):
    tasks = []
    @task
    def first(self):
        self.client.get("/first")
    @task
    def second(self):
        self.client.get("/second")
        self.interrupt(reschedule=False)

class A({base}):
    wait_time = {wait}
    {name} = "class"
    tasks = [Inner, Steps]
    def on_start(self):
        for name in NAMES:
            setattr(self, name, "x")
        self.client.get("/start")
    @task
    def own(self):
        assert (self.random, self.user, self.number) == ("x", "x", "x")
        self.client.get("/own")
    def on_stop(self):
        self.client.get("/stop")
"""

SCRIPT = """
import weir

NAMES = {names!r}

class A(weir.User):
    think = "1ms..2ms"
    session = "own"
    async def on_start(self):
        for name in NAMES:
            if name not in ("headers", "timeout"):
                setattr(self, name, "x")
        await self.get("/start")
    @weir.task
    async def read(self):
        assert self.session == "x" and self.random == "x"
        await self.get("/read")
        await self.request("GET", "/asked", params={{"a": 1}})
        async with self.stream("GET", "/") as r:
            assert r.status == 200
    async def on_stop(self):
        await self.get("/stop")
"""


def _load(folder: Path, text: str, *args: str) -> tuple[int, str, str]:
    (folder / "file.py").write_text(text)
    process = finished(sys.executable, "-c", START, "load", "-s", "file.py", *args, cwd=folder)
    return process.returncode, process.stdout, process.stderr


@pytest.mark.parametrize("base", ["HttpUser", "FastHttpUser"])
@pytest.mark.parametrize("wait", ["between(0.001, 0.002)", "constant_pacing(0.001)", "lambda self: 0.001"])
def test_a_locustfile_may_use_any_name(base: str, wait: str, service: Service, tmp_path: Path) -> None:
    pytest.importorskip("greenlet", reason="no greenlet; pip install 'weir-http[locust]'")
    text = LOCUSTFILE.format(names=NAMES, base=base, wait=wait, name="_default_headers")
    code, _, err = _load(tmp_path, text, service.url, "--users", "2", "-n", "40")
    assert (code, err) == (0, "")
    assert {"/start", "/own", "/inner", "/first", "/second", "/stop"} <= {one.path for one in service.seen}


def test_a_user_of_weir_may_use_any_name(service: Service, tmp_path: Path) -> None:
    code, _, err = _load(tmp_path, SCRIPT.format(names=NAMES), service.url, "--users", "2", "-n", "40")
    assert (code, err) == (0, "")
    assert {"/start", "/read", "/asked?a=1", "/", "/stop"} <= {one.path for one in service.seen}


def test_no_public_name_is_added_to_those_of_locust() -> None:
    pytest.importorskip("greenlet", reason="no greenlet; pip install 'weir-http[locust]'")
    from weir._locust.task_set import SequentialTaskSet, TaskSet  # noqa: PLC0415
    from weir._locust.users import FastHttpUser  # noqa: PLC0415

    def names(*kinds: type) -> set[str]:
        return {
            name
            for kind in kinds
            for name in {*dir(kind), *getattr(kind, "__annotations__", ())}
            if not name.startswith(("__", "_weir_"))
        }

    assert names(FastHttpUser, *FastHttpUser.__bases__) <= LOCUST_NAMES
    assert names(TaskSet, SequentialTaskSet) <= TASK_SET_NAMES
    assert not [name for name in dir(weir.User) if name.startswith("_") and not name.startswith(("__", "_weir_"))]


WAITS = """
from locust import FastHttpUser, task
class A(FastHttpUser):
    def wait_time(self):
        return self.pause[0]
    @task
    def a(self):
        self.client.get("/a")
"""


def test_a_wait_that_fails_is_named_with_its_line(service: Service, tmp_path: Path) -> None:
    pytest.importorskip("greenlet", reason="no greenlet; pip install 'weir-http[locust]'")
    _, _, err = _load(tmp_path, WAITS, service.url, "--users", "1", "-n", "2")
    assert "A.wait_time raised an exception" in err
    assert 'file.py", line 5, in wait_time' in err
    assert "no attribute 'pause'" in err


INIT = """
from locust import FastHttpUser, task
class A(FastHttpUser):
    def __init__(self, environment):
        super().__init__(environment)
        self.rows = {}["rows"]
    @task
    def a(self):
        self.client.get("/a")
"""


def test_a_user_that_cannot_be_made_ends_the_run_with_its_line(service: Service, tmp_path: Path) -> None:
    pytest.importorskip("greenlet", reason="no greenlet; pip install 'weir-http[locust]'")
    code, _, err = _load(tmp_path, INIT, service.url, "--users", "1", "-n", "2")
    assert code != 0
    assert "KeyError: 'rows', at file.py:6" in err
