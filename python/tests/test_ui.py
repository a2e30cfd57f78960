"""The page of `weir ui` in Chromium: a run is started, changed, stopped, found and compared in it as a person does."""

import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import programs
import pytest
from browser import Browser
from conftest import Service
from pages import axe
from test_live import EVIL, figure, press, text


@dataclass
class Ui:
    """A running page."""

    process: Any
    url: str
    spectator_url: str

    def at(self, *parts: object) -> str:
        """Address of a view."""
        return "/".join([self.url, *map(str, parts)])


StartUi = Callable[..., Ui]


@pytest.fixture
def start_ui(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StartUi]:
    """Start the page in a folder of its own, and end it at the end of the test."""
    processes = []
    monkeypatch.chdir(tmp_path)

    def start_ui(*args: str) -> Ui:
        process = programs.start(sys.executable, "-m", "weir", "ui", "--listen", "127.0.0.1:0", *args)
        processes.append(process)
        assert process.stderr
        operator, spectator = re.findall(r"http://\S+/#[\w-]+", process.stderr.readline())
        return Ui(process, operator, spectator)

    yield start_ui
    for process in processes:
        process.terminate()
        process.communicate()


def fill(browser: Browser, name: str, value: str) -> None:
    """Write into a field as a person does: it is chosen, and text is typed."""
    browser.evaluate(f"(() => {{ const f = document.getElementById({name!r}); f.focus(); f.select?.(); }})()")
    browser.ask("Input.insertText", text=value)


def click(browser: Browser, script: str) -> None:
    """Click on what a script finds, with the mouse, as soon as it is shown."""
    browser.wait(f"({script})?.offsetParent != null")
    x, y = browser.evaluate(f"""
        (() => {{
            const found = {script};
            found.scrollIntoView({{ block: "center" }});
            const box = found.getBoundingClientRect();
            return [box.left + box.width / 2, box.top + box.height / 2];
        }})()
    """)
    browser.mouse("Pressed", x, y, "left")
    browser.mouse("Released", x, y, "left")


def saved(service: Service, count: int, *flags: str) -> None:
    """Save runs in the store of the current folder, which is that of the page."""
    for _ in range(count):
        load = ["load", service.url, "--rate", "100", "-d", "1500ms", "-q", "--save"]
        assert programs.weir(*load, *flags).returncode in (0, 3)


# Runs of a busy machine are not trusted, and have no trend.
TRENDS = "(document.querySelectorAll('#trends figure').length > 2 || document.querySelector('#trends .help') !== null)"


def test_a_run_is_started_changed_stopped_and_found(browser: Browser, service: Service, start_ui: StartUi) -> None:
    ui = start_ui()
    browser.size(1280, 900)
    browser.open(ui.url)
    # Without a run the page begins with the form.
    browser.wait("document.querySelector('#views [aria-current]')?.textContent === 'New run'")
    browser.wait("document.getElementById('url') !== null")
    fill(browser, "url", service.url)
    fill(browser, "load-level", "40")
    fill(browser, "option-duration", "120s")
    fill(browser, "option-slo", "p99<30s")
    fill(browser, "run-label", "main")
    shown = f"weir load {service.url} --rate 40 --duration 120s --slo 'p99<30s'"
    browser.wait(f"document.getElementById('command').textContent === {shown!r}")
    assert "rate = 40" in text(browser, "toml")
    # A mistake is shown before the run.
    fill(browser, "option-duration", "soon")
    browser.wait("document.getElementById('problem').className === 'bad'")
    assert "soon" in text(browser, "problem")
    fill(browser, "option-duration", "120s")
    browser.wait("document.getElementById('problem').textContent === ''")
    click(browser, "document.getElementById('start')")
    browser.wait(f"{figure('requests')} > 20")
    assert browser.evaluate("document.querySelector('#views [aria-current]').textContent") == "Live"
    fill(browser, "level", "90")
    press(browser, "Enter", 13, "\r")
    browser.wait("document.getElementById('state').textContent.includes('90.0/s')")
    click(browser, "document.getElementById('stop')")
    browser.wait("document.getElementById('run-headline').textContent === 'The run is over'")
    assert "p99<30s" in text(browser, "end")
    click(browser, "document.querySelector('#run-buttons a')")
    browser.wait("document.getElementById('frame').src.includes('/documents/')")
    assert text(browser, "title") == "Run #1"
    click(browser, "[...document.querySelectorAll('#views a')].find((a) => a.textContent === 'History')")
    browser.wait("document.querySelectorAll('#runs tr[data-run]').length === 1")
    assert "main" in text(browser, "runs")
    # A second one, from the first: without leaving the page.
    click(browser, "document.querySelector('#runs tbody a')")
    click(
        browser,
        "[...document.querySelectorAll('#document-buttons button')].find((b) => b.textContent === 'Run it again')",
    )
    browser.wait(f"document.getElementById('command').textContent === {shown!r}")
    browser.wait("location.hash.endsWith('/new')")
    click(browser, "document.getElementById('start')")
    # Of the second run: the page has forgotten the first one.
    browser.wait("document.querySelector('#views [aria-current]').textContent === 'Live'")
    browser.wait("document.getElementById('state').textContent.includes(' of 2:00')")
    browser.evaluate("document.getElementById('stop').click()")
    browser.wait("document.getElementById('run-words').textContent === 'Saved as run #2.'")
    assert browser.complaints() == []
    origin = ui.url.split("#")[0]
    assert all(url.startswith((origin, "blob:")) for url in browser.requests())


def test_runs_are_filtered_compared_and_have_trends(browser: Browser, service: Service, start_ui: StartUi) -> None:
    ui = start_ui()
    saved(service, 2, "--label", "main")
    saved(service, 1, "--label", "other")
    browser.size(1280, 900)
    browser.open(ui.at("history"))
    rows = "document.querySelectorAll('#runs tr[data-run]').length"
    browser.wait(f"{rows} === 3 && {TRENDS}")
    fill(browser, "by-label", "other")
    browser.wait(f"{rows} === 1")
    fill(browser, "by-label", "")
    press(browser, "Backspace", 8)
    browser.wait(f"{rows} === 3")
    assert browser.evaluate("document.getElementById('compare').disabled")
    for number in (1, 3):
        click(browser, f"document.querySelector('#runs tr[data-run=\"{number}\"] input')")
    browser.wait("document.getElementById('compare').textContent === 'Compare 2 runs'")
    click(browser, "document.getElementById('compare')")
    browser.wait("document.getElementById('frame').src.includes('/documents/')")
    assert browser.evaluate("location.hash").endswith("/compare/1/3")
    # It can be reloaded, and goes back.
    browser.open("about:blank")
    browser.open(ui.at("compare", 1, 3))
    browser.wait("document.getElementById('frame').src.includes('/documents/')")
    assert browser.complaints() == []


def test_a_scenario_is_uploaded_and_loaded(browser: Browser, service: Service, start_ui: StartUi) -> None:
    ui = start_ui()
    browser.open(ui.at("new"))
    browser.wait("document.getElementById('option-scenario') !== null")
    scenario = f"# @name {EVIL}\\nGET {service.url}/\\nHTTP 200\\n"
    browser.evaluate(f"""
        (() => {{
            const field = document.querySelector('[data-option=scenario] .file');
            const files = new DataTransfer();
            files.items.add(new File([{scenario.replace(chr(10), "")!r}.replaceAll("\\\\n", "\\n")], "my shop.hurl"));
            field.files = files.files;
            field.dispatchEvent(new Event("change"));
        }})()
    """)
    browser.wait("document.getElementById('option-scenario').value === '.weir/uploads/my-shop.hurl'")
    fill(browser, "option-duration", "60s")
    browser.wait(
        "document.getElementById('command').textContent.includes('my-shop.hurl')"
        " && !document.getElementById('problem').textContent",
    )
    browser.evaluate("document.getElementById('start').click()")
    browser.wait("document.querySelector('#steps tbody th') !== null")
    assert browser.evaluate("document.querySelector('#steps tbody th').textContent") == EVIL
    browser.evaluate("document.getElementById('stop').click()")
    browser.wait("document.getElementById('run-headline').textContent === 'The run is over'")
    assert "caught" not in browser.evaluate("document.title")
    assert browser.evaluate("document.querySelectorAll('main img, main script').length") == 0
    assert browser.complaints() == []


def test_a_spectator_sees_runs_and_starts_none(browser: Browser, service: Service, start_ui: StartUi) -> None:
    ui = start_ui()
    saved(service, 1)
    browser.open(ui.spectator_url + "/new")
    browser.wait("document.getElementById('run-headline').textContent === 'No run yet'")
    assert browser.evaluate("[...document.querySelectorAll('#views a')].map((a) => a.textContent)") == [
        "Live",
        "History",
    ]
    assert browser.evaluate("document.getElementById('new').hidden")
    click(browser, "[...document.querySelectorAll('#views a')].find((a) => a.textContent === 'History')")
    browser.wait("document.querySelectorAll('#runs tr[data-run]').length === 1")
    click(browser, "document.querySelector('#runs tbody a')")
    browser.wait("document.getElementById('frame').src.includes('/documents/')")
    assert browser.evaluate("document.querySelectorAll('#document-buttons button').length") == 0


def test_a_run_that_cannot_start_says_why(browser: Browser, start_ui: StartUi) -> None:
    ui = start_ui()
    browser.open(ui.at("new"))
    browser.wait("document.getElementById('url') !== null")
    fill(browser, "url", "http://127.0.0.1:1/")
    browser.wait("document.getElementById('command').textContent.includes('127.0.0.1:1')")
    browser.evaluate("document.getElementById('start').click()")
    browser.wait("document.getElementById('run-headline').textContent === 'The run has not been saved'")
    assert "127.0.0.1:1" in text(browser, "run-messages")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_narrow_windows_and_keeps_the_rules_of_accessibility(
    browser: Browser, service: Service, start_ui: StartUi, scheme: str
) -> None:
    ui = start_ui()
    saved(service, 3)
    browser.prefer(scheme)
    ready = {
        ("live",): "!document.getElementById('run-state').hidden",
        ("history",): TRENDS,
        ("new",): "document.getElementById('command').textContent",
        ("run", 1): "document.getElementById('frame').src.includes('/documents/')",
    }
    for view, condition in ready.items():
        browser.open("about:blank")
        browser.open(ui.at(*view))
        browser.wait(condition)
        if view == ("new",):
            browser.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        for width in (320, 768, 1280):
            browser.size(width, 900)
            browser.wait(f"document.documentElement.scrollWidth <= {width}")
        assert axe(browser).bad == [], view
