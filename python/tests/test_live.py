"""The live page in Chromium: a load is watched, changed and stopped in it as a person does."""

import contextlib
import json
import re
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import programs
import pytest
from browser import Browser
from conftest import Service
from pages import axe

import weir

EVIL = "</script><img src=x onerror=\"document.title='caught'\"><!--"


@dataclass
class LiveLoad:
    """A load with its page."""

    process: Any
    url: str
    spectator_url: str
    folder: Path

    def result(self) -> dict[str, Any]:
        """Wait for the end and return the result."""
        assert self.process.wait(programs.TIMEOUT_S) is not None
        run: dict[str, Any] = json.loads((self.folder / "run.json").read_text())
        return run


Start = Callable[..., LiveLoad]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start a load with a page, and kill it at the end of the test."""
    processes = []

    def start(*args: str) -> LiveLoad:
        command = [
            sys.executable,
            "-m",
            "weir",
            "load",
            *args,
            "--web=127.0.0.1:0",
            "--out",
            str(tmp_path / "run.json"),
            "--quiet",
        ]
        process = programs.start(*command)
        processes.append(process)
        assert process.stderr
        line = process.stderr.readline()
        operator, spectator = re.findall(r"http://\S+/#[\w-]+", line)
        return LiveLoad(process, operator, spectator, tmp_path)

    yield start
    for process in processes:
        process.kill()
        process.communicate()


def text(browser: Browser, name: str) -> str:
    found: str = browser.evaluate(f"document.getElementById({name!r}).textContent")
    return found


def figure(name: str) -> str:
    """Script for the number in a figure."""
    return f"Number(document.querySelector('#figures [data-name=\"{name}\"] data')?.textContent.replaceAll(',', ''))"


def press(browser: Browser, key: str, code: int, written: str = "") -> None:
    """Press a key that the browser itself has a meaning for."""
    common = {"key": key, "code": key, "windowsVirtualKeyCode": code}
    browser.ask("Input.dispatchKeyEvent", type="keyDown", text=written, **common)
    browser.ask("Input.dispatchKeyEvent", type="keyUp", **common)


def write(browser: Browser, level: str) -> None:
    """Write a level into the field and press Enter."""
    browser.evaluate("(() => { const level = document.getElementById('level'); level.focus(); level.select(); })()")
    browser.ask("Input.insertText", text=level)
    press(browser, "Enter", 13, "\r")


def test_a_load_is_changed_paused_and_stopped_in_the_page(browser: Browser, service: Service, start: Start) -> None:
    live = start(service.url, "--rate", "40", "-d", "120s", "--slo", "p99<30s")
    browser.size(1280, 900)
    browser.open(live.url)
    browser.wait(f"{figure('requests')} > 20")
    write(browser, "90")
    browser.wait("document.getElementById('state').textContent.includes('90.0/s')")
    browser.evaluate("document.getElementById('pause').click()")
    browser.wait("document.getElementById('news').textContent === 'paused'")
    browser.evaluate("document.getElementById('pause').click()")
    browser.wait("document.getElementById('news').textContent.includes('90.0/s')")
    assert "90/" in text(browser, "again")
    # Keys of a slider.
    browser.evaluate("document.getElementById('slider').focus()")
    press(browser, "ArrowRight", 39)
    browser.wait("document.getElementById('answer').textContent.startsWith('rate set to')")
    browser.evaluate("document.getElementById('stop').click()")
    browser.wait("!document.getElementById('end').hidden")
    assert "p99<30s" in text(browser, "end")
    assert "--stages 40/" in text(browser, "end")
    assert browser.evaluate("document.querySelector('#end a').download") == "weir-report.html"
    assert browser.complaints() == []
    origin = live.url.split("#")[0]
    assert all(url.startswith((origin, "blob:")) for url in browser.requests())
    run = live.result()
    assert [made["kind"] for made in run["changes"]["made"]] == ["rate", "pause", "resume", "rate", "stop"]
    assert run["requests"]["failed"] == 0


def test_a_range_has_its_own_statistics(browser: Browser, service: Service, start: Start) -> None:
    live = start(service.url, "--rate", "50", "-d", "120s")
    browser.size(1280, 900)
    browser.open(live.url)
    browser.wait(f"{figure('requests')} > 190")
    left, top, width, height = browser.evaluate("""
        (() => {
            const plot = document.querySelector(".plot");
            plot.scrollIntoView({ block: "center" });
            const box = plot.getBoundingClientRect();
            return [box.left, box.top, box.width, box.height];
        })()
    """)
    middle = top + height / 2
    browser.mouse("Moved", left + width * 0.3, middle)
    browser.mouse("Pressed", left + width * 0.3, middle, "left")
    browser.mouse("Moved", left + width * 0.8, middle, "left")
    browser.mouse("Released", left + width * 0.8, middle, "left")
    browser.wait("document.getElementById('range').textContent.startsWith('Chosen')")
    chosen = browser.evaluate(figure("requests"))
    assert 40 < chosen < 190
    # The numbers of a range stay while the run goes on.
    words = text(browser, "range")
    browser.wait("Number.parseFloat(document.getElementById('state').textContent) > 7")
    assert (browser.evaluate(figure("requests")), text(browser, "range")) == (chosen, words)
    browser.press("0")
    browser.wait(f"{figure('requests')} > 300")


def test_a_spectator_has_no_form_and_a_wrong_token_shows_nothing(
    browser: Browser, service: Service, start: Start
) -> None:
    live = start(service.url, "--users", "2", "-d", "60s")
    browser.open(live.spectator_url)
    browser.wait(f"{figure('requests')} > 10")
    assert browser.evaluate("document.getElementById('controls').hidden")
    browser.open("about:blank")
    browser.open(live.url.split("#")[0] + "#wrong")
    browser.wait("document.getElementById('state').textContent.includes('token')")
    assert browser.evaluate("document.getElementById('plots').childElementCount") == 0


def test_hostile_names_are_text(browser: Browser, service: Service, start: Start, tmp_path: Path) -> None:
    scenario = tmp_path / "shop.hurl"
    scenario.write_text(f"# @name {EVIL}\nGET {service.url}/status?code=503\nHTTP 200\n")
    live = start("-s", str(scenario), "--users", "2", "--think", "50ms", "-d", "60s", "--slo", "p99<30s")
    browser.open(live.url)
    browser.wait(f"{figure('requests')} > 4")
    browser.wait("document.querySelector('#steps tbody th') !== null")
    assert browser.evaluate("document.querySelector('#steps tbody th').textContent") == EVIL
    assert "503" in text(browser, "failures")
    browser.evaluate("document.getElementById('stop').click()")
    browser.wait("!document.getElementById('end').hidden")
    assert "caught" not in browser.evaluate("document.title")
    assert browser.evaluate("document.querySelectorAll('main img, main script').length") == 0
    assert browser.complaints() == []


@pytest.fixture
def closing() -> Iterator[str]:
    """URL of a service that closes each connection at once."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                listener.accept()[0].close()

    thread = threading.Thread(target=serve)
    thread.start()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    thread.join()


def test_failures_have_the_names_and_messages_of_the_report(browser: Browser, closing: str, start: Start) -> None:
    live = start(closing, "--rate", "40", "-d", "60s")
    browser.open(live.url)
    browser.wait(f"{figure('failed')} > 40")
    browser.evaluate("document.getElementById('stop').click()")
    browser.wait("!document.getElementById('end').hidden")
    rows = browser.evaluate("""
        Array.from(document.querySelectorAll("#failures tbody tr"),
            (row) => [row.cells[0].textContent, row.cells[3].textContent])
    """)
    details = live.result()["target"]["failure_details"]
    assert details
    assert dict(rows) == details
    assert browser.complaints() == []


def test_steps_that_a_script_names_as_it_goes_are_in_the_table(
    browser: Browser, service: Service, start: Start, tmp_path: Path
) -> None:
    script = tmp_path / "shop.py"
    script.write_text("""
import weir


class Shopper(weir.User):
    @weir.task
    async def shop(self):
        for n in range(1000):
            await self.get("/status?code=200", name=f"step {n}" if n < 3 else "many")
            await weir.sleep(0.05)
""")
    live = start("-s", str(script), service.url, "--users", "1", "-d", "60s")
    browser.open(live.url)
    browser.wait("document.querySelectorAll('#steps tbody th').length === 4")
    names = browser.evaluate("[...document.querySelectorAll('#steps tbody th')].map((name) => name.textContent)")
    assert names == ["step 0", "step 1", "step 2", "many"]
    # A page that comes later knows all of them at once.
    browser.open("about:blank")
    browser.open(live.spectator_url)
    browser.wait("document.querySelectorAll('#steps tbody th').length === 4")
    assert browser.complaints() == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_narrow_windows_and_keeps_the_rules_of_accessibility(
    browser: Browser, service: Service, start: Start, scheme: str
) -> None:
    live = start(service.url, "--rate", "40", "-d", "60s", "--slo", "p99<30s")
    browser.prefer(scheme)
    browser.open(live.url)
    browser.wait(f"{figure('requests')} > 40")
    write(browser, "60")
    browser.wait("!document.getElementById('changes-section').hidden")
    for width in (320, 768, 1280):
        browser.size(width, 900)
        # Charts take their new width with the next frame.
        browser.wait(f"document.documentElement.scrollWidth <= {width}")
    assert axe(browser).bad == []


def test_a_day_of_intervals_is_drawn_in_bounded_memory(browser: Browser, service: Service, start: Start) -> None:
    live = start(service.url, "--rate", "5", "-d", "60s")
    browser.size(1280, 900)
    browser.open(live.url)
    browser.wait(f"{figure('requests')} > 4")
    bins, ok, bytes_of_numbers = browser.evaluate("""
        (async () => {
            const { Store, page, render } = await import("/live.js");
            const store = new Store(1800, 1);
            const times = Array.from({ length: 120 }, (_, i) => [i * 1e4 + 1e5, i % 7 + 1]).flat();
            const bin = (n) => ({ n, w: 1, ok: 400, failed: 1, bytes: 9, backlog: 0,
                in_flight: n % 9, max_in_flight: n % 9,
                iterations: 9, cpu: 1e7, times, failed_times: [], status: { 200: 400 }, failures: { timeout: 1 },
                steps: Array.from({ length: 50 }, () => [8, 0, 0, 8e6]) });
            for (let n = 0; n < 86400; n++) store.take({ all: false, next: n + 1, bins: [bin(n)] });
            page.store = store;
            page.hello.steps = Array.from({ length: 50 }, (_, i) => `step ${i}`);
            render();
            const size = ({ times, steps }) => times.cells.byteLength + times.counts.byteLength + steps.byteLength;
            const all = store.bins.reduce((sum, one) => sum + size(one), 0);
            return [store.bins.length, store.figures(null).ok, all];
        })()
    """)
    assert bins <= 1800
    assert ok == 86400 * 400
    assert bytes_of_numbers < 10e6


def test_connections_of_websocket_have_charts_and_figures(browser: Browser, start: Start) -> None:
    with weir.serve("ws") as service:
        url = f"ws://{service.host}:{service.port}/"
        live = start(url, "--rate", "40", "-d", "120s", "-c", "8", "-b", "x")
        browser.size(1280, 900)
        browser.open(live.url)
        browser.wait(f"{figure('held connections')} === 8 && {figure('upgraded')} === 8")
        titles = browser.evaluate("[...document.querySelectorAll('#plots figcaption')].map((one) => one.textContent)")
        assert any(title.startswith("Connections held") for title in titles), titles
        assert any(title.startswith("Upgrades") for title in titles), titles
        browser.evaluate("document.getElementById('stop').click()")
        browser.wait("!document.getElementById('end').hidden")
        assert browser.complaints() == []
