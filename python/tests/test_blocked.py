"""Scripts that wait for ever in a function that nothing interrupts: the run ends without them."""

import json
import re
import signal
import sys
from pathlib import Path

import pytest
from conftest import Service
from programs import TIMEOUT_S, started

START = "from weir import _script; _script.main()"

SHOP = """
import ctypes, socket, threading
import weir

class Shopper(weir.User):
    @weir.task
    async def browse(self):
        for _ in range(3):
            await self.get("/items")
        wait()

def wait():
    print("blocked", flush=True)
    {wait}
"""

LOCUSTFILE = """
import socket
from locust import HttpUser, task

class Reader(HttpUser):
    @task
    def read(self):
        self.client.get("/items")
        ours, _ = self.theirs = socket.socketpair()
        print("blocked", flush=True)
        ours.recv(1)
"""


def _interrupted(folder: Path, url: str, *args: str) -> tuple[int, str, str]:
    """Exit code, output and messages of a load that gets one Ctrl-C once its script has blocked."""
    command = [sys.executable, "-c", START, "load", "-s", "shop.py", url, "--format", "json", *args]
    with started(*command, cwd=folder) as process:
        # Beside JSON on stdout, what a script prints is on stderr.
        assert process.stderr is not None
        assert any("blocked" in line for line in process.stderr)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=TIMEOUT_S)
    return process.returncode, out, err


@pytest.mark.parametrize(
    ("wait", "place"),
    [
        ("threading.Event().wait()", "shop.py:14: wait()"),
        # A function of C that keeps the lock of the interpreter.
        ("ctypes.PyDLL(None).pause()", "a call by Shopper, which keeps Python's lock,"),
    ],
)
def test_the_first_ctrl_c_ends_a_script_that_blocks(service: Service, tmp_path: Path, wait: str, place: str) -> None:
    (tmp_path / "shop.py").write_text(SHOP.format(wait=wait))
    code, out, err = _interrupted(tmp_path, service.url, "--users", "1")
    run = json.loads(out)
    # The third response is still that of the task.
    assert (code, run["interrupted"], run["requests"]["ok"]) == (130, True, 2), err
    assert err.splitlines()[-1].startswith(f"weir: {place} has not returned for ")


def test_a_locustfile_that_blocks_is_named(service: Service, tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(LOCUSTFILE)
    code, _, err = _interrupted(tmp_path, service.url, "--users", "1")
    assert code == 130
    assert err.splitlines()[-1].startswith("weir: shop.py:11: Reader.read() has not returned for ")


def test_processes_that_block_end_with_ctrl_c(service: Service, tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(SHOP.format(wait="threading.Event().wait()").replace("print(", "print(0 and "))
    command = [sys.executable, "-c", START, "load", "-s", "shop.py", service.url, "--users", "2", "--processes", "2"]
    with started(*command, "--format", "json", cwd=tmp_path) as process:
        assert service.asked.wait(TIMEOUT_S)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=TIMEOUT_S)
    assert (process.returncode, json.loads(out)["interrupted"]) == (130, True), err


def test_a_run_ends_ten_seconds_after_its_time_without_a_script_that_blocks(service: Service, tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(SHOP.format(wait="threading.Event().wait()"))
    command = [sys.executable, "-c", START, "load", "-s", "shop.py", service.url, "--users", "1", "-d", "5s"]
    with started(*command, "--out", "run.json", cwd=tmp_path) as process:
        out, err = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 2, err
    run = json.loads((tmp_path / "run.json").read_text())
    assert (run["interrupted"], run["requests"]["ok"]) == (False, 2)
    why = run["ended_by"]["script_error"]
    found = re.fullmatch(r"shop\.py:14: wait\(\) has not returned for ([\d.]+) ?s.*", why)
    assert found, why
    assert float(found[1]) >= 10, why
    assert err.splitlines()[-1] == f"weir: {why}"
    assert "ended by an error of its script: shop.py:14" in out
