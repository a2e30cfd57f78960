"""The gateway of `examples/gate`: its script, configuration and service, with real calls."""

from __future__ import annotations

import http.client
import json
import os
import random
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
from naming import ROOT
from programs import binary, finished, started

pytestmark = pytest.mark.wide

EXAMPLE = ROOT / "examples" / "gate"
PORTS = ("HTTPS_PORT", "HTTP_PORT", "ADMIN_PORT", "STABLE_PORT", "CANARY_PORT")
RELEASES = {"STABLE_PORT": "1.4", "CANARY_PORT": "1.5"}
TIMEOUT_S = 30.0
DRAIN_DELAY_S = 1.0


def until(what: str, holds: Callable[[], bool]) -> None:
    """Wait until a condition holds."""
    end = time.monotonic() + TIMEOUT_S
    while not holds():
        if time.monotonic() > end:
            pytest.fail(f"timeout: {what}")
        time.sleep(0.01)


def is_listening(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


@dataclass(frozen=True)
class Reply:
    """A response, read to its end."""

    status: int
    headers: dict[str, str]
    text: str


@dataclass(frozen=True)
class Example:
    """The example while it runs, in a folder of its own.

    Attributes:
        folder: A copy of the example.
        ports: Ports by the names of their variables.
        gate: The gateway.
    """

    folder: Path
    ports: dict[str, int]
    gate: subprocess.Popen[str]

    def connect(self) -> http.client.HTTPSConnection:
        """Connect as a client that trusts the example's CA, and nothing else."""
        trust = ssl.create_default_context(cafile=str(self.folder / "certificates" / "ca.pem"))
        return http.client.HTTPSConnection("localhost", self.ports["HTTPS_PORT"], timeout=TIMEOUT_S, context=trust)

    def call(self, method: str, path: str, body: object = None, **headers: str) -> Reply:
        """Call over HTTPS, on a connection of its own."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        if body is not None:
            named["content-type"] = "application/json"
        return self._reply(self.connect(), method, path, None if body is None else json.dumps(body), named)

    def plain(self, port: str, path: str) -> Reply:
        """Get a path over HTTP."""
        connection = http.client.HTTPConnection("127.0.0.1", self.ports[port], timeout=TIMEOUT_S)
        return self._reply(connection, "GET", path, None, {})

    def metric(self, name: str) -> float:
        """Return the sum of a metric's samples whose lines begin with a text."""
        lines = self.plain("ADMIN_PORT", "/metrics").text.splitlines()
        return sum(float(line.split()[-1]) for line in lines if line.startswith(name))

    @staticmethod
    def _reply(
        connection: http.client.HTTPConnection, method: str, path: str, body: str | None, headers: dict[str, str]
    ) -> Reply:
        try:
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            text = response.read().decode()
            named = {name.lower(): value for name, value in response.getheaders()}
            return Reply(response.status, named, text)
        finally:
            connection.close()


def _free_ports(count: int) -> list[int]:
    """Return free ports below those that the system gives to other tests meanwhile."""
    free: set[int] = set()
    while len(free) < count:
        port = random.randrange(10_000, 30_000)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            free.add(port)
    return list(free)


@pytest.fixture
def example(tmp_path: Path) -> Iterator[Example]:
    """The two releases, and the gateway in front of them."""
    folder = tmp_path / "gate"
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("certificates", "__pycache__"))
    assert finished(str(folder / "certificates.sh")).returncode == 0
    ports = dict(zip(PORTS, _free_ports(len(PORTS)), strict=True))
    env = {**os.environ, **{name: str(port) for name, port in ports.items()}}
    with ExitStack() as stack:
        for name, version in RELEASES.items():
            command = [sys.executable, "-m", "uvicorn", "--app-dir", str(folder), "service:app", "--no-access-log"]
            stack.enter_context(
                started(*command, "--port", str(ports[name]), env={**os.environ, "VERSION": version}, silent=True)
            )
        for name in RELEASES:
            until("a release listens", partial(is_listening, ports[name]))
        options = ["--config", "gate.toml", "--drain-delay", f"{DRAIN_DELAY_S}s", "--grace", "20s"]
        gate = stack.enter_context(started(str(binary()), "gate", *options, env=env, cwd=folder))
        assert gate.stdout
        urls = json.loads(gate.stdout.readline())
        assert urls["listeners"]["https"] == f"https://127.0.0.1:{ports['HTTPS_PORT']}"
        yield Example(folder, ports, gate)


def version_of(reply: Reply) -> str:
    assert reply.status == 200, reply
    return str(json.loads(reply.text)["version"])


def test_the_canary_has_its_share_and_callers_keep_their_release(example: Example) -> None:
    first = [example.call("GET", "/items/7") for _ in range(300)]
    on_canary = [reply for reply in first if version_of(reply) == "1.5"]
    # 30 are expected; five standard deviations are 26.
    assert 4 <= len(on_canary) <= 56
    cookies = [(reply.headers["set-cookie"].split(";")[0], version_of(reply)) for reply in first[:40]]
    cookies += [(reply.headers["set-cookie"].split(";")[0], "1.5") for reply in on_canary]
    assert all(version_of(example.call("GET", "/items/7", cookie=cookie)) == release for cookie, release in cookies)

    # More for the canary, by a reload: its callers stay, others join them, and an open connection goes on.
    connection = example.connect()
    connection.request("GET", "/items/1")
    assert connection.getresponse().read()
    config = example.folder / "gate.toml"
    config.write_text(config.read_text().replace("weight = 90", "weight = 50").replace("weight = 10", "weight = 50"))
    example.gate.send_signal(signal.SIGHUP)
    moved = [cookie for cookie, release in cookies if release == "1.4"]
    until(
        "the new weights",
        lambda: any(version_of(example.call("GET", "/items/7", cookie=cookie)) == "1.5" for cookie in moved),
    )
    stays = [cookie for cookie, release in cookies if release == "1.5"]
    assert {version_of(example.call("GET", "/items/7", cookie=cookie)) for cookie in stays} == {"1.5"}
    connection.request("GET", "/items/2")
    assert connection.getresponse().read()
    connection.close()
    assert example.metric('weir_gate_attempts_total{upstream="canary",reason="first"}') >= len(on_canary)
    assert example.metric('weir_gate_calls_total{route="GET,HEAD /items/{*rest}",outcome="failed"}') == 0


def test_orders_have_a_rate_a_size_and_the_stable_release(example: Example) -> None:
    # Faster than five per second, whatever the machine: 40 orders take less than 6 s.
    statuses = [example.call("POST", "/orders", {"item": 7}, x_customer="ada").status for _ in range(40)]
    assert set(statuses) == {201, 429}
    assert statuses[:10] == [201] * 10
    rejected = example.call("POST", "/orders", {"item": 7}, x_customer="ada")
    if rejected.status == 429:
        assert int(rejected.headers["retry-after"]) >= 1
    assert example.call("POST", "/orders", {"item": 7}, x_customer="grace").status == 201
    assert example.call("POST", "/orders", {"item": 7, "note": "x" * 20_000}, x_customer="alan").status == 413
    counted = example.metric('weir_gate_rejected_total{route="POST /orders",upstream="stable",reason="rate_limited"')
    assert counted == statuses.count(429) + (rejected.status == 429)
    assert example.metric('weir_gate_attempts_total{upstream="canary"') == 0


def test_only_the_routes_are_reachable_and_http_is_redirected(example: Example) -> None:
    assert example.call("GET", "/docs").status == 404
    assert example.call("GET", "/metrics").status == 404
    assert example.call("DELETE", "/items/7").status == 405
    reply = example.plain("HTTP_PORT", "/items/7?a=1")
    assert (reply.status, reply.headers["location"]) == (
        308,
        f"https://127.0.0.1:{example.ports['HTTPS_PORT']}/items/7?a=1",
    )
    assert example.plain("ADMIN_PORT", "/readyz").text == "ready\n"
    upstreams = json.loads(example.plain("ADMIN_PORT", "/upstreams").text)
    assert sorted(upstream["name"] for upstream in upstreams) == ["canary", "stable"]


def test_a_third_report_is_rejected_and_calls_in_flight_outlive_the_end(example: Example) -> None:
    replies: list[Reply] = []
    reports = [threading.Thread(target=lambda: replies.append(example.call("GET", "/reports/2026"))) for _ in range(2)]
    for report in reports:
        report.start()
    until("two reports in flight", lambda: len(json.loads(example.plain("ADMIN_PORT", "/calls").text)) == 2)
    third = example.call("GET", "/reports/2026")
    assert (third.status, "retry-after" in third.headers) == (503, True)

    example.gate.terminate()
    until("readiness says no", lambda: example.plain("ADMIN_PORT", "/readyz").status == 503)
    assert version_of(example.call("GET", "/items/7"))
    for report in reports:
        report.join(TIMEOUT_S)
    assert [version_of(reply) for reply in replies] == ["1.4", "1.4"]
    until("the end of listening", lambda: not is_listening(example.ports["HTTPS_PORT"]))
    _, stderr = example.gate.communicate(timeout=TIMEOUT_S)
    assert (example.gate.returncode, stderr) == (0, "")


def test_new_certificates_are_used_without_a_signal(example: Example) -> None:
    before = (example.folder / "certificates" / "ca.pem").read_text()
    assert finished(str(example.folder / "certificates.sh")).returncode == 0
    assert (example.folder / "certificates" / "ca.pem").read_text() != before

    def is_trusted() -> bool:
        try:
            return example.call("GET", "/items/7").status == 200
        except ssl.SSLCertVerificationError:
            return False

    until("the new certificate", is_trusted)


def test_the_pages_output_is_what_the_commands_print(example: Example) -> None:
    page = (EXAMPLE / "README.md").read_text()
    [checked] = re.findall(r"^\$ (weir gate check gate.toml)\n(.*)$", page, re.M)
    done = finished(str(binary()), *checked[0].split()[1:], cwd=example.folder)
    assert (done.returncode, done.stdout.rstrip()) == (0, checked[1])
    config = (EXAMPLE / "gate.toml").read_text()
    changed = config.replace("weight = 90", "weight = 50").replace("weight = 10", "weight = 50")
    (example.folder / "next.toml").write_text(changed)
    [difference] = re.findall(r"^\$ weir gate diff gate.toml next.toml\n(.*)$", page, re.M)
    done = finished(str(binary()), "gate", "diff", "gate.toml", "next.toml", cwd=example.folder)
    assert (done.returncode, done.stdout.rstrip()) == (0, difference)
