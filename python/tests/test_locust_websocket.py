"""WebSockets of locustfiles: users that are greenlets hold them as weir's own users do."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from programs import finished

import weir

pytest.importorskip("greenlet", reason="no greenlet; pip install 'weir-http[locust]'")

HEAD = "from locust import HttpUser, constant, task\n\n"


@pytest.fixture
def service() -> Iterator[weir.Service]:
    with weir.serve("ws", gap="10ms", messages=3, delay="20ms") as running:
        yield running


def _load(folder: Path, text: str, url: str, *args: str) -> tuple[int, Any, str]:
    file = folder / "locustfile.py"
    file.write_text(HEAD + text)
    done = finished(sys.executable, "-m", "weir", "load", "-s", str(file), url, "--format", "json", *args)
    return done.returncode, json.loads(done.stdout) if done.stdout.startswith("{") else done.stdout, done.stderr


def _url(service: weir.Service) -> str:
    return f"http://{service.host}:{service.port}"


CHAT = """
class Chatter(HttpUser):
    wait_time = constant(0)

    @task
    def chat(self):
        with self.client.websocket("/echo", name="chat") as ws:
            ws.send("hello", name="greet")
            assert ws.receive(timeout=5) == "hello"
            ws.send(b"\\x00")
            assert ws.receive() == b"\\x00"
        ws = self.client.websocket("/push")
        assert [one is not None for one in ws] == [True] * 3
        assert ws.close_code == 1000, ws.close_code
"""


def test_a_task_sends_waits_and_iterates_while_others_go_on(service: weir.Service, tmp_path: Path) -> None:
    code, run, err = _load(tmp_path, CHAT, _url(service), "--users", "20", "--loops", "2")
    assert (code, err) == (0, ""), (run, err)
    steps = {step["name"]: (step["requests"], step["failed"]) for step in run["steps"]}
    assert steps == {"chat": (40, 0), "greet": (40, 0), "chat message": (40, 0), "WS /push": (40, 0)}
    # 20 users, each of which waits for some 140 ms, at the same time.
    assert run["iterations"]["ok"] == 40
    with urlopen(f"{_url(service)}/stats") as response:
        stats = json.load(response)
    assert (stats["received"], stats["violations"]) == (80, {})


ENDS = """
class Chatter(HttpUser):
    wait_time = constant(0)

    @task
    def chat(self):
        with self.client.websocket("/echo") as ws:
            for _ in ws:
                pass
"""


def test_the_end_of_the_load_closes_what_a_task_holds(service: weir.Service, tmp_path: Path) -> None:
    code, run, err = _load(tmp_path, ENDS, _url(service), "--users", "3", "-d", "500ms")
    assert (code, err) == (0, ""), (run, err)
    assert (run["websocket"]["upgraded"], run["websocket"]["closes"]) == (3, {})


FAILS = """
class Chatter(HttpUser):
    wait_time = constant(0)

    @task
    def chat(self):
        with self.client.websocket("/absent") as ws:
            ws.send("never")
"""


def test_a_rejected_upgrade_ends_the_task_and_is_one_failure(service: weir.Service, tmp_path: Path) -> None:
    code, run, err = _load(tmp_path, FAILS, _url(service), "--users", "1", "--loops", "2")
    # The exception in the task adds nothing to the failed request.
    assert (code, err) == (3, "weir: none of 2 requests succeeded; 2 x 404\n"), run
    assert (run["websocket"]["rejected"], run["iterations"]["failed"]) == ({"404": 2}, 2)
    assert run["websocket"]["messages_sent"] == 0


BLOCKS = """
import websocket
from websockets.sync.client import connect

class Chatter(HttpUser):
    @task
    def chat(self):
        self.client.get("/")
"""


def test_clients_that_block_the_other_users_are_named_before_the_load(service: weir.Service, tmp_path: Path) -> None:
    (tmp_path / "websocket").mkdir()
    (tmp_path / "websocket/__init__.py").write_text("")
    _, _, err = _load(tmp_path, BLOCKS, _url(service), "--users", "1", "--loops", "1")
    path = tmp_path / "locustfile.py"
    lines = [line for line in err.splitlines() if "blocks" in line]
    assert lines == [
        f"weir: {path}:5: websockets blocks the other users while it waits; use self.client.websocket(url) of an "
        "HttpUser"
    ]
