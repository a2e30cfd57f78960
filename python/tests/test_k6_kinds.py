"""Kinds of scripts of k6, in the folders of `examples/k6`: each sends the requests that its first line says."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from import_judges import RecordingService
from naming import ROOT
from programs import binary, finished, started

pytestmark = pytest.mark.wide

EXAMPLES = ROOT / "examples" / "k6"
SCRIPTS = sorted(str(path.relative_to(EXAMPLES)) for path in EXAMPLES.glob("*/*.[jt]s") if path.parent.name != "lib")


class Services:
    """Services that the scripts need: one of HTTP that answers all and is recorded, one of WebSocket, one of gRPC."""

    def __init__(self, stack: ExitStack) -> None:
        """Start them; they end with the stack."""
        self._urls: dict[str, str] = {}
        for name in ("httpbin", "ws", "grpc"):
            service = stack.enter_context(started(str(binary()), "serve", name))
            assert service.stdout
            self._urls[name] = json.loads(service.stdout.readline())["listening"]
        port = int(self._urls["httpbin"].rpartition(":")[2])
        self.recorded = RecordingService(upstream=("127.0.0.1", port))
        stack.callback(self.recorded.close)
        self._urls["httpbin"] = f"http://127.0.0.1:{self.recorded.port}"

    def url(self, name: str) -> str:
        """URL of a service."""
        return self._urls[name]

    def sent(self) -> Counter[str]:
        """Requests since the last call, with their numbers."""
        sent = Counter(f"{it.request.method} {it.request.target}" for it in self.recorded.exchanges)
        self.recorded.exchanges.clear()
        return sent


@pytest.fixture(scope="module")
def services() -> Iterator[Services]:
    with ExitStack() as stack:
        yield Services(stack)


def expected(head: str) -> dict[str, tuple[int, bool]]:
    """Requests of a first line, `GET /a x2; POST /b x1+`, with their numbers and whether more are right as well."""
    listed = head.partition(" Sends: ")[2].split(";")
    found = [re.fullmatch(r"(\S+ \S+) x(\d+)(\+?)", one.strip()) for one in listed if one.strip()]
    assert all(found), head
    return {one[1]: (int(one[2]), one[3] == "+") for one in found if one}


def test_there_are_sixty_scripts() -> None:
    assert len(SCRIPTS) + len(list(EXAMPLES.glob("[0-9]*.[jt]s"))) >= 60


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_sends_what_it_says(name: str, services: Services) -> None:
    script = EXAMPLES / name
    head = script.read_text("utf-8").splitlines()[0]
    service = re.search(r"Service: (\w+)", head)
    host = services.url(service[1] if service else "httpbin")
    services.sent()
    done = finished(str(binary()), "load", "-s", str(script), "-e", f"HOST={host}", "-f", "json", timeout_s=120)
    sent = services.sent()
    code = re.search(r"exit code (\d+)", head, re.I)
    assert done.returncode == (int(code[1]) if code else 0), done.stdout[-3000:] + done.stderr
    result = json.loads(done.stdout)["script"]
    assert not result["exceptions"], result["exceptions"]
    assert not [check for check in result["checks"] if check["failed"]], result["checks"]
    if service:
        assert result["checks"] or result["metrics"], result
        return
    wanted = expected(head)
    assert set(sent) == set(wanted), sent
    for request, (count, may_be_more) in wanted.items():
        assert sent[request] == count or (may_be_more and sent[request] > count), sent
