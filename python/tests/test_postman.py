"""Collections of Postman send in weir what they send in newman, and their tests have the same results."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import postman_collections as scripts
import postman_requests as requests
import pytest
from import_judges import Comparable, RecordedRequest, RecordingService, comparable, judge
from programs import binary, finished

pytestmark = pytest.mark.soak

COLLECTIONS = {
    name.lower(): made
    for module in (scripts, requests)
    for name, made in vars(module).items()
    if name.isupper() and isinstance(made, dict)
}
ROWS = 'name,n,quoted\ntea,1,"1"\n"coffee, black",2.5,"x ""y"""\ncocoa,3,""\n'
ENVIRONMENT = {"name": "dev", "values": [{"key": "word", "value": "tea", "enabled": True}]}


def sent(request: RecordedRequest) -> Comparable:
    """Return the request without what only newman sends: Referer after a redirect, and cookies for TLS without it."""
    method, target, headers, body = comparable(request)
    kept = [line for line in headers if not line.startswith("referer:")]
    cookies = [line.replace("; safe=1", "").replace(";safe=1", "") for line in kept]
    return method, target, cookies, body


class Side:
    """What a program has sent, and how often each test of each request has passed and failed."""

    def __init__(self, service: RecordingService) -> None:
        """Take the requests from the service."""
        self.sent = [sent(exchange.request) for exchange in service.exchanges]
        self.tests: Counter[tuple[str, str, bool]] = Counter()
        service.exchanges.clear()


def newman(folder: Path, service: RecordingService, *args: str) -> Side:
    """Play the collection in newman."""
    program = judge("newman", "node_modules", ".bin", "newman")
    report = ["-r", "json", "--reporter-json-export", "newman.json"]
    finished(str(program), "run", "c.json", "--timeout-request", "20000", *report, *args, cwd=folder, timeout_s=100)
    side = Side(service)
    executions = json.loads((folder / "newman.json").read_text())["run"]["executions"]
    # A request that scripts send is an execution with the assertions of its owner.
    for execution in {execution["cursor"]["ref"]: execution for execution in executions}.values():
        for found in execution.get("assertions") or []:
            if not found["skipped"]:
                side.tests[execution["item"]["name"], found["assertion"], "error" not in found] += 1
    return side


def weir(folder: Path, service: RecordingService, *args: str) -> tuple[Side, int, str]:
    """Play the collection in weir."""
    given = args or ("-n", "1")
    done = finished(str(binary()), "load", "-s", "c.json", "-c", "1", *given, "-f", "json", cwd=folder, timeout_s=100)
    side = Side(service)
    assert done.stdout, done.stderr
    for check in json.loads(done.stdout)["script"]["checks"]:
        name = check["group"].split("::")[-1]
        for key, has_passed in (("passed", True), ("failed", False)):
            if check[key]:
                side.tests[name, check["name"], has_passed] += check[key]
    return side, done.returncode, done.stderr


def written(folder: Path, name: str, port: int) -> None:
    """Write the collection, and the files that it names."""
    (folder / "c.json").write_text(json.dumps(COLLECTIONS[name]).replace("PORT", str(port)))
    (folder / "note.txt").write_text("a note\n")
    (folder / "rows.csv").write_text(ROWS)
    (folder / "dev.json").write_text(json.dumps(ENVIRONMENT))


@pytest.mark.parametrize("name", sorted(set(COLLECTIONS) - {"rows"}))
def test_a_collection_has_the_requests_and_results_of_newman(name: str, tmp_path: Path) -> None:
    service = RecordingService()
    written(tmp_path, name, service.port)
    expected = newman(tmp_path, service)
    service.close()
    service = RecordingService()
    written(tmp_path, name, service.port)
    found, _, log = weir(tmp_path, service)
    service.close()
    if name == "dynamic":
        assert len(found.sent) == len(expected.sent)
    else:
        assert found.sent == expected.sent, log
    assert expected.sent, log
    assert found.tests == expected.tests, log


def test_rows_and_environments_are_those_of_newman(tmp_path: Path) -> None:
    service = RecordingService()
    written(tmp_path, "rows", service.port)
    expected = newman(tmp_path, service, "-d", "rows.csv", "-e", "dev.json", "-n", "3")
    found, code, log = weir(tmp_path, service, "--data", "rows.csv", "--variables-file", "dev.json", "-n", "3")
    service.close()
    assert found.sent == expected.sent
    assert found.tests == expected.tests
    assert code == 0, log
