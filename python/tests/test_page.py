"""HTML report of a run in Chromium: it is drawn, shows the numbers of the run, and sends no requests."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import programs
import pytest
from browser import Browser
from conftest import Service
from pages import axe, chart, focus, plots, shown

import weir

EVIL = "</script><script>document.title='caught'</script><img src=http://127.0.0.1:9/x onerror=\"alert('caught')\"><!--"

Show = Callable[[dict[str, Any]], str]


@pytest.fixture
def data(service: Service) -> dict[str, Any]:
    """Run with a series of 300 intervals, whose times have all magnitudes."""
    run = weir.load(service.url, connections=2, requests=200, slo=["p99<30s", "p50<1us"]).to_dict()
    run["series"] = [dict(run["series"][0]) | point(i, 1.2 ** (i % 100)) for i in range(300)]
    return run


def point(i: int, size: float) -> dict[str, Any]:
    times = {"p50_ms": 0.0005 * size, "p99_ms": 0.0037 * size, "max_ms": 0.0123 * size}
    counts = {"ok": i * 7 % 12_345, "failed": i % 3, "in_flight": i % 17, "max_in_flight": i % 17, "backlog": i % 5}
    return {"t_s": float(i), "width_s": 0.7, "histogram": ""} | times | counts


@pytest.fixture
def show(browser: Browser, tmp_path: Path) -> Show:
    """Write the HTML report of a run, open it, and return its text."""

    def show(data: dict[str, Any]) -> str:
        saved, page = tmp_path / "run.json", tmp_path / "page.html"
        saved.write_text(json.dumps(data))
        assert programs.weir("report", str(saved), "--html", str(page)).returncode == 0
        browser.size(1200, 900)
        browser.prefer("light")
        seconds = browser.open(page.as_uri())
        assert seconds < 10, "a report opens in a fraction of a second; after ten, something hangs"
        assert browser.requests() == [page.as_uri()]
        return page.read_text()

    return show


def test_every_chart_is_drawn_without_errors_of_the_browser(browser: Browser, data: dict[str, Any], show: Show) -> None:
    show(data)
    drawn = {plot["title"]: len(plot["lines"]) for plot in plots(browser)}
    assert drawn.keys() == {"Percentiles", "Throughput", "Response time", "Failures", "In the system"}
    assert drawn["Response time"] == 3
    assert all(width > 300 for plot in plots(browser) for width in plot["lines"])
    assert browser.complaints() == []


def test_the_metrics_are_those_of_the_run(browser: Browser, data: dict[str, Any], show: Show) -> None:
    show(data)
    figures = browser.evaluate("""
        Object.fromEntries([...document.querySelectorAll(".figures div")].map((figure) =>
            [figure.querySelector("dt").textContent, Number(figure.querySelector("data").value)]))
    """)
    times = data["response_ms"]
    assert figures == {
        "responses": data["rate_per_s"]["achieved"],
        "requests": data["requests"]["total"],
        "failed": data["requests"]["failed"],
        "p50": times["p50"],
        "p99": times["p99"],
        "p99.9": times["p999"],
        "max": times["max"],
    }
    verdict = browser.evaluate("document.querySelector('.verdict').innerText")
    assert all(objective["objective"] in verdict for objective in data["slo"])


def test_the_keyboard_moves_by_interval_and_shows_its_numbers(
    browser: Browser, data: dict[str, Any], show: Show
) -> None:
    show(data)
    focus(browser, "Response time")
    for key, index in [("Home", 0), ("ArrowRight", 1), ("ArrowRight", 2), ("ArrowLeft", 1), ("End", 299)]:
        browser.press(key)
        point = data["series"][index]
        expected = [point["p50_ms"], point["p99_ms"], point["max_ms"]]
        assert shown(browser, "Response time") == pytest.approx(expected, rel=1e-6), (key, index)
        # All charts over time show the same interval.
        assert shown(browser, "Throughput") == pytest.approx([point["ok"] / 0.7], rel=1e-6)
        assert shown(browser, "In the system") == [point["in_flight"], point["backlog"]]
    described = chart(browser, "Response time")
    assert described["where"] == "at 4:59"
    assert described["text"].startswith("4:59: p50 ")
    browser.press("Escape")
    assert chart(browser, "Response time")["values"] == [None] * 3


def test_charts_and_tables_write_every_number_in_the_same_way(
    browser: Browser, data: dict[str, Any], show: Show
) -> None:
    show(data)
    focus(browser, "Response time")
    browser.press("Home")
    rows = browser.evaluate("""
        [...document.querySelectorAll("details tbody tr")].map((r) => [...r.children].map((cell) => cell.textContent))
    """)
    steps = browser.evaluate("""
        (() => {
            const plot = document.activeElement;
            return Array.from({ length: 300 }, () => {
                const words = [...document.querySelectorAll("figure.chart")].slice(1).map((figure) =>
                    [figure.querySelector(".where").textContent.slice(3),
                        ...[...figure.querySelectorAll(".legend data")].map((value) => value.textContent)]);
                plot.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight" }));
                return words;
            });
        })()
    """)
    assert len(rows) == len(steps) == 300
    for row, (good, time, bad, system) in zip(rows, steps, strict=True):
        start, _, failed, rate, in_flight, waiting, *times = row
        assert time == [start, *times]
        assert system == [start, in_flight, waiting]
        assert (good[0], bad[0]) == (start, start)
        assert good[1] == rate or failed != "0"


def test_a_drag_zooms_all_charts_over_time_and_a_key_resets_them(
    browser: Browser, data: dict[str, Any], show: Show
) -> None:
    show(data)
    area = focus(browser, "Throughput")
    x, y = area["left"], area["top"] + area["height"] / 2
    browser.mouse("Moved", x + area["width"] * 0.4, y)
    browser.mouse("Pressed", x + area["width"] * 0.4, y, "left")
    browser.mouse("Moved", x + area["width"] * 0.6, y, "left")
    browser.mouse("Released", x + area["width"] * 0.6, y, "left")
    zoomed = {plot["title"]: plot["zoomed"] for plot in plots(browser)}
    assert zoomed == {name: name != "Percentiles" for name in zoomed}
    browser.mouse("Moved", x + area["width"] * 0.5, y)
    value, where = chart(browser, "Throughput")["values"][0], chart(browser, "Throughput")["where"]
    assert round(float(value) * 0.7) in [p["ok"] for p in data["series"]]
    assert where != ""
    focus(browser, "Throughput")
    browser.press("0")
    assert not any(plot["zoomed"] for plot in plots(browser))
    browser.press("+")
    assert chart(browser, "Throughput")["zoomed"]
    browser.press("-")
    assert not chart(browser, "Throughput")["zoomed"]


def test_a_name_in_the_legend_hides_its_line(browser: Browser, data: dict[str, Any], show: Show) -> None:
    show(data)
    focus(browser, "Response time")
    browser.evaluate("document.activeElement.closest('figure').querySelector('.legend button').click()")
    assert len(chart(browser, "Response time")["lines"]) == 2


def test_light_and_dark_follow_the_reader_and_the_switch(browser: Browser, data: dict[str, Any], show: Show) -> None:
    def ground() -> str:
        return str(browser.evaluate("getComputedStyle(document.body).backgroundColor"))

    show(data)
    light = ground()
    browser.prefer("dark")
    dark = ground()
    assert light != dark
    browser.evaluate("document.getElementById('light').click()")
    assert ground() == light
    browser.prefer("light")
    browser.evaluate("document.getElementById('dark').click()")
    assert ground() == dark


def test_nothing_is_wider_than_a_phone(browser: Browser, data: dict[str, Any], show: Show) -> None:
    show(data | {"target": data["target"] | {"url": "http://h/" + "long" * 50}})
    browser.size(360, 740, touch=True)
    assert browser.evaluate("document.documentElement.scrollWidth") == 360
    assert browser.evaluate("Math.max(...[...document.querySelectorAll('.plot svg')].map((p) => p.clientWidth))") < 360


def test_text_of_a_service_is_escaped(browser: Browser, data: dict[str, Any], show: Show) -> None:
    data["target"] |= {"url": f"http://h/{EVIL}", "server": EVIL, "failure_details": {"reset": EVIL}}
    data["manifest"] |= {"hostname": EVIL, "command": ["weir", EVIL]}
    data["trust"] = {"ok": False, "reasons": [EVIL]}
    data["failures"] |= {EVIL: 0, "reset": 0}
    show(data)
    assert browser.evaluate("document.title") == f"GET http://h/{EVIL} · weir"
    assert browser.evaluate("document.images.length") == 0
    assert browser.complaints() == [], "the content security policy blocked nothing"


def test_ten_thousand_points_fit_and_their_peaks_are_drawn(browser: Browser, data: dict[str, Any], show: Show) -> None:
    base = data["series"][0]
    data["series"] = [base | point(i, 900 + i * 7919 % 1000) for i in range(10_000)]
    data["series"][6543]["max_ms"] = 5000.0
    assert len(show(data)) < 1_000_000
    focus(browser, "Response time")
    top = browser.evaluate("""
        Math.min(...[...document.activeElement.querySelectorAll("path.line")].map((line) => line.getBBox().y))
    """)
    heights = browser.evaluate("document.activeElement.querySelector('path.line.h2').getBBox().height")
    assert top < 60, "the single peak reaches the top"
    assert heights > 20
    assert browser.complaints() == []


def test_without_the_script_every_chart_is_there_as_a_picture(data: dict[str, Any], show: Show) -> None:
    html = show(data)
    figures = html.split('<figure class="chart"')[1:]
    assert len(figures) == 5
    for figure in figures:
        before, _, _ = figure.partition("</figure>")
        assert '<path class="line h' in before
        assert "<h3>" in before


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_an_accessibility_checker_finds_nothing(
    browser: Browser, data: dict[str, Any], show: Show, scheme: str
) -> None:
    show(data | {"series": data["series"][:20]})
    browser.prefer(scheme)
    browser.evaluate("document.querySelector('details').open = true")
    focus(browser, "Response time")
    browser.press("End")
    result = axe(browser)
    assert result.bad == []
    assert {"color-contrast", "aria-valid-attr-value", "scrollable-region-focusable"} <= result.good
