"""`environment.stats` at the end of a locustfile: weir's own counts."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import Service
from programs import finished

START = "from weir import _script; _script.main()"
ROOT = Path(__file__).parents[2]

FILE = """
import json
from locust import HttpUser, constant, events, task

class Reader(HttpUser):
    wait_time = constant(0)
    @task
    def read(self):
        self.client.get("/items")
        self.client.get("/items?id=1", name="item")
        self.client.post("/items?id=1", name="item")
        self.client.get("/status?code=503")
        self.client.get("/slow?ms=50")

class Writer(HttpUser):
    wait_time = constant(0)
    @task
    def write(self):
        self.client.get("/items")

@events.quitting.add_listener
def judge(environment, **_):
    stats = environment.stats
    print("JSON", json.dumps({
        "total": stats.total.to_dict(),
        "fail_ratio": stats.total.fail_ratio,
        "entries": {f"{name}/{method}": entry.to_dict() for (name, method), entry in stats.entries.items()},
        "items": stats.get("/items", "GET").num_requests,
        "shared": [stats.get("item", method).num_requests for method in ("GET", "POST")],
        "absent": stats.get("/other", "GET").num_requests,
        "p100": [stats.get("/slow?ms=50", "GET").get_response_time_percentile(p) for p in (0, 1)],
        "errors": [error.to_dict() for error in stats.errors.values()],
        "runner": environment.runner.stats is stats,
        "span": stats.last_request_timestamp - stats.start_time,
    }))
    if stats.total.fail_ratio > 0.1:
        environment.process_exit_code = 3
    if stats.total.get_response_time_percentile(0.95) > 40:
        environment.process_exit_code = 4
"""


@pytest.mark.parametrize("processes", [(), ("--processes", "2")])
def test_the_counts_are_there_when_a_locustfile_ends(
    service: Service, tmp_path: Path, processes: tuple[str, ...]
) -> None:
    (tmp_path / "locustfile.py").write_text(FILE)
    command = [sys.executable, "-c", START, "load", "-s", "locustfile.py", service.url, "--users", "2", "--loops", "5"]
    process = finished(*command, "--out", "run.json", *processes, cwd=tmp_path)
    assert process.returncode == 4, process.stderr
    lines = [line for line in process.stdout.splitlines() if line.startswith("JSON ")]
    found: dict[str, Any] = json.loads(lines[-1][5:])
    run = json.loads((tmp_path / "run.json").read_text())
    total, entries = found["total"], found["entries"]
    assert (total["num_requests"], total["num_failures"]) == (run["requests"]["total"], run["requests"]["failed"])
    assert (total["num_requests"], total["num_failures"], found["fail_ratio"]) == (30, 5, pytest.approx(5 / 30))
    assert total["max_response_time"] == max(run["response_ms"]["max"], run["failed_ms"]["max"])
    assert total["min_response_time"] == min(run["response_ms"]["min"], run["failed_ms"]["min"])
    mean = (run["response_ms"]["mean"] * 25 + run["failed_ms"]["mean"] * 5) / 30
    assert total["avg_response_time"] == pytest.approx(mean)
    assert total["total_rps"] == pytest.approx(30 / run["duration_s"])
    assert total["current_rps"] == pytest.approx(30 / run["duration_s"], rel=0.01)
    assert found["span"] == pytest.approx(run["duration_s"], abs=1e-3)
    # Both classes send it, and one name that two methods share is one entry.
    counts = {name: (one["num_requests"], one["num_failures"]) for name, one in entries.items()}
    assert counts == {
        "/items/GET": (10, 0),
        "item/GET|POST": (10, 0),
        "/status?code=503/GET": (5, 5),
        "/slow?ms=50/GET": (5, 0),
    }
    assert (found["items"], found["shared"], found["absent"]) == (10, [10, 10], 0)
    slow = entries["/slow?ms=50/GET"]
    assert found["p100"] == [pytest.approx(slow["min_response_time"], rel=0.01), slow["max_response_time"]]
    assert 50 <= slow["min_response_time"] <= slow["median_response_time"] <= slow["max_response_time"]
    errors = [{"method": "GET", "name": "/status?code=503", "error": "5xx", "occurrences": 5}]
    assert (found["errors"], found["runner"]) == (errors, True)


def test_the_extra_of_locustfiles_brings_what_they_import() -> None:
    text = (ROOT / "pyproject.toml").read_text()
    extra = re.search(r"^locust = \[(.*)\]$", text, re.MULTILINE)
    assert extra is not None
    assert set(re.findall(r'"(\w+)', extra[1])) == {"greenlet", "requests"}
