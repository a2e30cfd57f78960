"""`weir run FILE.py`: one task of a user, with each request and response."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import Service
from programs import TIMEOUT_S, finished

START = "from weir import _script; _script.main()"

SHOP = """
import weir

class Shopper(weir.User):
    weight = 5
    headers = {"Authorization": "Bearer top-secret"}
    async def on_start(self):
        await self.post("/login", json={"name": "ada"})

    @weir.task
    async def browse(self):
        r = await self.get("/items", name="items")
        r.check(r.text == "hello", "not hello")
        print("in the task")

class Broken(weir.User):
    @weir.task
    async def fail(self):
        r = await self.get("/items")
        r.check(r.text == "other", "not other")
        await self.get("/status?code=404")
        raise KeyError("token")
"""


def _play(folder: Path, text: str, *args: str, keys: str = "") -> "subprocess.CompletedProcess[str]":
    (folder / "shop.py").write_text(text)
    command = [sys.executable, "-c", START, "run", "shop.py", *args]
    return subprocess.run(
        command, cwd=folder, input=keys, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )


def test_a_task_is_printed_with_its_requests_and_responses(service: Service, tmp_path: Path) -> None:
    process = _play(tmp_path, SHOP, service.url, "-v")
    assert (process.returncode, process.stderr) == (0, "")
    lines = process.stdout.splitlines()
    for line in (
        "> POST /login HTTP/1.1",
        '{"name": "ada"}',
        "> Authorization: ***",
        "> GET /items HTTP/1.1",
        "< HTTP/1.1 200 OK",
        "hello",
        "in the task",
        "passed: 2 steps, 2 requests, 0 checks",
    ):
        assert line in lines, process.stdout
    assert "top-secret" not in process.stdout
    assert [(one.method, one.path) for one in service.seen] == [("POST", "/login"), ("GET", "/items")]
    shown = _play(tmp_path, SHOP, service.url, "--show-secrets")
    assert "> Authorization: Bearer top-secret" in shown.stdout


def test_failures_stand_with_their_responses_and_the_traceback_at_the_end(service: Service, tmp_path: Path) -> None:
    process = _play(tmp_path, SHOP, service.url, "--user", "Broken")
    assert process.returncode == 1
    lines = [line.strip() for line in process.stdout.splitlines()]
    assert "✗ not other" in lines
    assert "failed: 2 steps (2 failed), 2 requests, 0 checks" in lines
    assert 'shop.py", line 22, in fail' in process.stderr
    assert process.stderr.count("Traceback") == 1
    played = _play(tmp_path, SHOP, service.url, "--user", "Broken", "--json")
    document = json.loads(played.stdout)
    assert [step["verdict"] for step in document["steps"]] == ["failed", "failed"]
    assert document["steps"][0]["failures"] == ["not other"]


def test_a_breakpoint_stops_the_task(service: Service, tmp_path: Path) -> None:
    text = SHOP.replace('print("in the task")', "breakpoint()\n        self.done = True")
    process = _play(tmp_path, text, service.url, keys="p r.status + 1000\nc\n")
    assert process.returncode == 0, process.stderr
    assert "1200" in process.stdout


def test_a_locustfile_is_played_once(service: Service, tmp_path: Path) -> None:
    pytest.importorskip("greenlet", reason="no greenlet; pip install 'weir-http[locust]'")
    text = """
from locust import HttpUser, between, task
class Shopper(HttpUser):
    wait_time = between(100, 200)
    def on_start(self):
        self.client.post("/login", json={"name": "ada"})
    @task
    def items(self):
        with self.client.get("/items", catch_response=True) as r:
            r.failure("not good")
"""
    process = _play(tmp_path, text, service.url)
    assert process.returncode == 1
    assert [(one.method, one.path) for one in service.seen] == [("POST", "/login"), ("GET", "/items")]
    assert "✗ not good" in process.stdout


def test_mistakes_are_one_line(service: Service, tmp_path: Path) -> None:
    for args, words in (
        ([], "shop.py: no class has a host; set it there, or give the URL: weir run shop.py"),
        ([service.url, "--user", "Missing"], "shop.py has no class of users Missing; there are Shopper, Broken"),
        ([service.url, "--variable", "a=1"], "--variable cannot be used with a script; give arguments after --"),
    ):
        process = _play(tmp_path, SHOP, *args)
        assert (process.returncode, process.stderr.splitlines()[-1][: len(words) + 6]) == (2, f"weir: {words}")
    process = _play(tmp_path, SHOP, "http://127.0.0.1:9")
    assert process.returncode == 2
    assert "cannot connect to 127.0.0.1:9" in process.stderr
    assert not service.seen
    hurl = finished(sys.executable, "-c", START, "run", "no.hurl", "--user", "A", cwd=tmp_path)
    assert "--user is for Python scripts" in hurl.stderr


@pytest.mark.parametrize("encoding", [{}, {"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}], ids=["utf-8", "ascii"])
def test_a_name_beyond_ascii_is_found_in_any_locale(service: Service, tmp_path: Path, encoding: dict[str, str]) -> None:
    text = 'import weir\n\nclass Käufer(weir.User):\n    @weir.task\n    async def straße(self): await self.get("/")\n'
    (tmp_path / "käufer.py").write_text(text, "utf-8")
    command: list[str | bytes] = [sys.executable, "-c", START, "run", "käufer.py".encode(), service.url]
    env = {**os.environ, "LC_ALL": "C", **encoding}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, timeout=TIMEOUT_S, check=False)
    assert (done.returncode, b"passed: 1 step" in done.stdout) == (0, True), done
