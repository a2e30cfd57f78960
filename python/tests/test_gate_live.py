"""The live page of a gateway in Chromium: watched under load, used to eject a host and to drain, and left alone."""

from __future__ import annotations

import http.client
import json
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import programs
import pytest
from browser import Browser
from conftest import Service, running_service
from pages import axe
from programs import binary

EVIL = "</script><img src=x onerror=\"document.title='caught'\"><!--"
NAME = "backend"
"""Name of the upstream."""
LOST = ("ERR_CONNECTION_REFUSED", "ERR_CONNECTION_RESET", "ERR_EMPTY_RESPONSE", "Failed to fetch")
"""What a browser logs of a server that is not there."""


@dataclass
class Gateway:
    """A gateway before two hosts."""

    url: str
    admin: str
    hosts: list[str]
    start: Callable[[], subprocess.Popen[str]]
    process: subprocess.Popen[str]

    @property
    def page(self) -> str:
        """Address of the page."""
        return f"{self.admin}/live"


def free_port() -> int:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        port: int = held.getsockname()[1]
        return port


@pytest.fixture
def gateway(tmp_path: Path, service: Service) -> Iterator[Gateway]:
    """A gateway with a hostile name of a route, and ports that it keeps when it is started again."""
    with ExitStack() as stack:
        other = stack.enter_context(running_service())
        condition = json.dumps(EVIL)
        (tmp_path / "gate.toml").write_text(f"""
[upstreams.{NAME}]
urls = ["{service.url}", "{other.url}"]
[policies.patient]
retries = 1
[[routes]]
match = {{ path = "/{{*rest}}" }}
upstream = "{NAME}"
policy = "patient"
[[routes]]
match = {{ path = "/{{*rest}}", headers = {{ x-evil = {condition} }} }}
upstream = "{NAME}"
[[routes]]
match = {{ path = "/limited" }}
upstream = "{NAME}"
caller = {{ header = "x-tenant" }}
rate_limit = "1/1h"
[[routes]]
match = {{ path = "/robots.txt" }}
respond = {{ body = "none" }}
""")
        port, admin = free_port(), free_port()
        listen = ["--listen", f"127.0.0.1:{port}", "--admin", f"127.0.0.1:{admin}"]

        def start() -> subprocess.Popen[str]:
            command = [str(binary()), "gate", "--config", str(tmp_path / "gate.toml"), *listen]
            process = stack.enter_context(programs.started(*command))
            assert process.stdout
            line = process.stdout.readline()
            assert line.startswith("{"), process.stderr and process.stderr.read()
            return process

        hosts = [one.url.removeprefix("http://") for one in (service, other)]
        yield Gateway(f"http://127.0.0.1:{port}", f"http://127.0.0.1:{admin}", hosts, start, start())


@pytest.fixture
def load(gateway: Gateway) -> Iterator[None]:
    """50 calls per second as long as a test runs, one in ten of which fails."""
    urls = [f"{gateway.url}/"] * 9 + [f"{gateway.url}/status?code=503"]
    with ExitStack() as stack:
        for url, rate in ((urls[0], "45"), (urls[-1], "5")):
            command = [str(binary()), "load", url, "--rate", rate, "-d", "10m", "--quiet"]
            stack.enter_context(programs.started(*command, silent=True))
        yield


def figure(name: str) -> str:
    """Script for the number in a figure."""
    return f"Number.parseFloat(document.querySelector('#figures [data-name=\"{name}\"] data')?.textContent)"


def cells(browser: Browser, table: str) -> list[list[str]]:
    """Texts of a table's rows."""
    found: list[list[str]] = browser.evaluate(f"""
        Array.from(document.querySelectorAll("#{table} tbody tr"),
            (row) => Array.from(row.cells, (cell) => cell.textContent))
    """)
    return found


def press(browser: Browser, key: str, code: int, written: str = "") -> None:
    """Press a key that the browser itself has a meaning for."""
    common = {"key": key, "code": key, "windowsVirtualKeyCode": code}
    browser.ask("Input.dispatchKeyEvent", type="keyDown", text=written, **common)
    browser.ask("Input.dispatchKeyEvent", type="keyUp", **common)


@pytest.mark.usefixtures("load")
def test_numbers_move_and_a_host_is_ejected(browser: Browser, gateway: Gateway) -> None:
    browser.size(1280, 900)
    browser.open(gateway.page)
    browser.wait(f"{figure('calls')} > 20 && {figure('failed')} > 1 && {figure('retries')} > 1")
    route = next(row for row in cells(browser, "routes") if row[0] == "/{*rest}")
    assert float(route[1].removesuffix("/s")) > 20
    [upstream] = cells(browser, "upstreams")
    assert upstream[0] == NAME
    assert "5xx" in [row[0] for row in cells(browser, "failures")]
    lines = browser.evaluate("""
        Array.from(document.querySelectorAll("#plots path.line"), (line) => line.getBBox().width)
    """)
    assert len(lines) == 11
    assert lines[0] > 0
    # The first button of the hosts, by the keyboard; the question is cancelled first, and that is its default.
    browser.evaluate("document.querySelector('#hosts button').focus()")
    press(browser, "Enter", 13, "\r")
    browser.wait("document.getElementById('question').open")
    press(browser, "Enter", 13, "\r")
    browser.wait("!document.getElementById('question').open")
    assert [row[2] for row in cells(browser, "hosts")] == ["healthy", "healthy"]
    focused = browser.evaluate("document.activeElement.getAttribute('aria-label')")
    assert focused == f"Eject {gateway.hosts[0]} of {NAME}"
    press(browser, "Enter", 13, "\r")
    browser.wait("document.getElementById('question').open")
    browser.evaluate("document.getElementById('confirm').click()")
    browser.wait("document.querySelector('#hosts tbody td:nth-child(3)').textContent === 'ejected by an operator'")
    assert browser.evaluate("document.getElementById('answer').textContent") == f"{gateway.hosts[0]} is ejected."
    # One host has to stay.
    browser.evaluate("document.querySelectorAll('#hosts button')[1].click()")
    browser.evaluate("document.getElementById('confirm').click()")
    browser.wait("document.getElementById('answer').textContent.startsWith('409: not ejected')")
    browser.evaluate("document.querySelectorAll('#hosts button')[0].click()")
    browser.evaluate("document.getElementById('confirm').click()")
    browser.wait("document.querySelector('#hosts tbody td:nth-child(3)').textContent === 'healthy'")
    for words, state in (("End draining\u2026", "draining"), ("Drain\u2026", "serving")):
        browser.evaluate("document.getElementById('drain').click()")
        browser.evaluate("document.getElementById('confirm').click()")
        browser.wait(f"document.getElementById('drain').textContent === {json.dumps(words)}")
        assert browser.evaluate("document.getElementById('state').textContent").startswith(state)
    changes = [row[1] for row in cells(browser, "events")]
    assert changes[:2] == ["The gateway is ready", "The gateway drains"]
    assert f"{NAME}: {gateway.hosts[0]} ejected by an operator" in changes
    conflict = [one for one in browser.complaints() if "409" not in json.dumps(one)]
    assert conflict == []
    assert all(url.startswith(gateway.admin) for url in browser.requests())


def test_hostile_names_are_text(browser: Browser, gateway: Gateway) -> None:
    browser.size(1280, 900)
    browser.open(gateway.page)
    browser.wait("document.querySelector('#routes tbody th') !== null")
    assert [row[0] for row in cells(browser, "upstreams")] == [NAME]
    assert any(EVIL in row[0] for row in cells(browser, "routes"))
    # What no gateway lets through today, in every place.
    browser.evaluate(f"""
        (() => {{
            const evil = {json.dumps(EVIL)}, ask = window.fetch;
            let turn = 0;
            window.fetch = async (...what) => {{
                const state = await (await ask(...what)).json();
                const call = {{ age_ms: 5, stage: evil, route: evil, client: evil, method: evil, target: evil }};
                state.calls = {{ in_flight: 2, oldest: [call, call] }};
                const [route] = state.routes, [upstream] = state.upstreams;
                route.name = upstream.name = evil;
                route.rejected = [{{ upstream: evil, reason: evil, priority: evil, count: 3 }}];
                upstream.failures = {{ [evil]: 1 }};
                upstream.circuit = `${{evil}}${{turn++}}`;
                upstream.hosts.forEach((host) => {{ host.host = host.condition = evil; }});
                const slots = {{ limit: 1, in_flight: 1, queue_length: 1, shed_threshold: 0, gradient: null }};
                state.limits = [{{ upstream: evil, ...slots }}];
                return new Response(JSON.stringify(state));
            }};
        }})()
    """)
    browser.wait("document.querySelectorAll('#calls tbody tr').length === 2")
    browser.wait("document.querySelectorAll('#events tbody tr').length > 0")
    for table in ("routes", "rejected", "upstreams", "failures", "hosts", "limits", "events", "calls"):
        assert any(EVIL in cell for row in cells(browser, table) for cell in row), table
    browser.evaluate("document.querySelector('#hosts button').click()")
    assert EVIL in browser.evaluate("document.getElementById('question').textContent")
    assert "caught" not in browser.evaluate("document.title")
    assert browser.evaluate("document.querySelectorAll('body img, main script').length") == 0
    assert browser.complaints() == []


def test_callers_with_the_most_rejections_are_a_table(browser: Browser, gateway: Gateway) -> None:
    browser.size(1280, 900)
    browser.open(gateway.page)
    browser.wait("document.querySelector('#routes tbody th') !== null")
    assert browser.evaluate("document.getElementById('callers-section').hidden")

    def call(tenant: str, times: int) -> list[int]:
        connection = http.client.HTTPConnection(gateway.url.removeprefix("http://"))
        statuses = []
        for _ in range(times):
            connection.request("GET", "/limited", headers={"X-Tenant": tenant})
            response = connection.getresponse()
            response.read()
            statuses.append(response.status)
        connection.close()
        return statuses

    hostile = EVIL.split("=", maxsplit=1)[0]
    assert call(hostile, 3)[1:] == call("ann", 3)[1:] == [429, 429]
    browser.wait("document.querySelectorAll('#callers tbody tr').length === 2")
    # The page counts on while it is open, and sorts anew.
    assert call("ann", 3) == [429] * 3
    browser.wait("document.querySelector('#callers tbody th').textContent === 'ann'")
    rows = cells(browser, "callers")
    assert [row[:3] for row in rows] == [["ann", "/limited", "5"], [hostile, "/limited", "2"]]
    assert rows[0][3] == rows[1][3] == "rate limited"
    assert browser.evaluate("document.querySelectorAll('body img, main script').length") == 0
    assert axe(browser).bad == []
    assert browser.complaints() == []


@pytest.mark.usefixtures("load")
def test_a_restart_is_a_mark_and_no_negative_rate(browser: Browser, gateway: Gateway) -> None:
    browser.open(gateway.page)
    browser.wait(f"{figure('calls')} > 20")
    gateway.process.kill()
    gateway.process.wait()
    browser.wait("/^not reachable since \\d\\d:\\d\\d:\\d\\d/.test(document.getElementById('state').textContent)")
    assert browser.evaluate("document.getElementById('drain').disabled")
    gateway.process = gateway.start()
    browser.wait("document.getElementById('state').textContent.startsWith('serving')")
    browser.wait(f"{figure('calls')} > 20")
    changes = [row[1] for row in cells(browser, "events")]
    assert changes[0] == "The gateway was started anew: its counters begin at 0"
    assert changes[1].startswith("Reachable again after")
    assert changes[2] == "The gateway is not reachable"
    rates, marks = browser.evaluate("""
        (async () => {
            const { page } = await import("/live/live.js");
            return [page.history.rates("all", "calls").y, page.history.marks.map(([, words]) => words)];
        })()
    """)
    assert marks == ["not reachable", "restarted"]
    assert rates[0] is None
    assert rates.count(None) >= 3
    assert all(rate >= 0 for rate in rates if rate is not None)
    known = [one for one in browser.complaints() if not any(words in json.dumps(one) for words in LOST)]
    assert known == []


def test_differences_and_quantiles_are_those_of_a_naive_record(browser: Browser, gateway: Gateway) -> None:
    browser.open(gateway.page)
    browser.wait("document.querySelector('#routes tbody th') !== null")
    wrong = browser.evaluate("""
        (async () => {
            const { History, keyOf, page, quantileOf } = await import("/live/live.js");
            let seed = 7;
            const random = (n) => { seed = (seed * 48271) % 2147483647; return seed % n; };
            const wrong = [];
            for (let round = 0; round < 200; round++) {
                const state = structuredClone(page.history.state), history = new History();
                const { calls, latency } = state.routes[0];
                let x = 1e9, counted = 0, restarts = 0;
                const times = [];
                for (let step = 0; step < 60; step++) {
                    x += 1 + random(3);
                    state.now_s += 1 + random(3);
                    if (random(20) === 0) { history.lost(x); continue; }
                    const isRestart = history.last() && random(25) === 0;
                    if (isRestart) {
                        state.run = `run ${step}`;
                        state.now_s = 1;
                        for (const route of state.routes) {
                            for (const name in route.calls) route.calls[name] = 0;
                            for (const bucket of route.latency) bucket[1] = 0;
                        }
                        restarts++;
                    }
                    const n = random(50);
                    calls.succeeded += n;
                    for (let i = 0; i < n; i++) {
                        const at = random(latency.length);
                        latency[at][1]++;
                        if (!isRestart && history.last()) times.push(at);
                    }
                    if (!isRestart && history.last()) counted += n;
                    history.take(structuredClone(state), x);
                }
                const rows = history.rows, key = keyOf("all", "calls");
                const known = rows.filter((row) => row.before);
                const found = known.reduce((sum, row) => sum + History.between(row.before, row, key), 0);
                if (found !== counted) wrong.push(["sum", found, counted]);
                const marks = history.marks.filter(([, words]) => words === "restarted");
                if (marks.length !== restarts) wrong.push(["restarts", marks.length, restarts]);
                const rates = history.rates("all", "calls").y;
                if (rates.some((rate) => rate !== null && !(rate >= 0))) wrong.push(["rate", rates]);
                // The quantile lies in the bucket of the time that sorting finds.
                times.sort((a, b) => a - b);
                const counts = Float64Array.from(latency, (_, i) => times.filter((at) => at === i).length);
                for (const q of [0.01, 0.5, 0.9, 0.99, 1]) {
                    if (!times.length) continue;
                    const at = times[Math.max(0, Math.ceil(q * times.length - 1e-9) - 1)];
                    const low = at ? latency[at - 1][0] * 1e3 : 0, high = (latency[at][0] ?? Infinity) * 1e3;
                    const { ms, isOver } = quantileOf(counts, q);
                    const isInBucket = ms >= low - 1e-9 && ms <= high + 1e-9;
                    if (!isInBucket || isOver !== (high === Infinity)) wrong.push([q, ms, low, high]);
                }
            }
            return wrong;
        })()
    """)
    assert wrong == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.usefixtures("load")
def test_it_fits_narrow_windows_and_keeps_the_rules_of_accessibility(
    browser: Browser, gateway: Gateway, scheme: str
) -> None:
    browser.prefer(scheme)
    browser.open(gateway.page)
    browser.wait(f"{figure('calls')} > 20 && {figure('failed')} > 1")
    for width in (320, 768, 1280):
        browser.size(width, 900)
        # Charts take their new width with the next frame.
        browser.wait(f"document.documentElement.scrollWidth <= {width}")
    assert axe(browser).bad == []
    browser.evaluate("document.querySelector('#hosts button').click()")
    assert axe(browser).bad == []


def test_a_foreign_page_cannot_change_anything(browser: Browser, gateway: Gateway) -> None:
    """A page on another port of this machine, as one of another site would be, is rejected."""
    with running_service() as foreign:
        browser.open(foreign.url)
        status: Any = browser.evaluate(f"""
            fetch("{gateway.admin}/drain", {{ method: "POST", mode: "no-cors" }}).then((reply) => reply.type)
        """)
        assert status == "opaque"
    browser.open(gateway.page)
    browser.wait("document.getElementById('state').textContent.startsWith('serving')")
