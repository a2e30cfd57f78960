"""HTML reports of a study, a comparison and a capacity search in Chromium: they show the numbers of their data."""

import csv
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import programs
import pytest
from browser import Browser
from pages import axe, chart, focus, plots, shown

import weir

WEIR = [sys.executable, "-m", "weir"]

# Two variants are measured, one with too few responses for a trusted run; the third one fails.
STUDY = """
question = "Does <b>waiting</b> matter?"
repeats = 3
timeouts = {{ warmup = "0s", ready = "20s", stop = "2s" }}
[variants.fast]
command = [{weir}, "serve", "work", "--port", "{{port}}", "--delay", "1ms", "--mix", "good=1"]
[variants.slow]
command = [{weir}, "serve", "work", "--port", "{{port}}", "--delay", "100ms", "--mix", "good=1"]
[variants.broken]
command = "echo 'no <table> here' >&2; exit 3"
ready = "port"
[loads.work]
url = "http://127.0.0.1:{{port}}/api/work"
connections = "{{connections}}"
duration = "2s"
header = ["Authorization: Bearer sesame"]
[sweep]
connections = [1, 2]
"""


@dataclass(frozen=True)
class Made:
    """HTML report, and its data."""

    page: Path
    data: dict[str, Any]
    folder: Path


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder = tmp_path_factory.mktemp("study")
    words = ", ".join(json.dumps(word) for word in WEIR)
    (folder / "study.toml").write_text(STUDY.format(weir=words))
    page = folder / "page.html"
    data = run("study", str(folder), "--format", "json", "--html", str(page))
    assert page.read_text() == (folder / "results/report.html").read_text()
    return Made(page, data, folder / "results")


@pytest.fixture(scope="module")
def comparison(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Five interleaved runs per side; the other side is slower, and two of its runs are not trusted."""
    folder = tmp_path_factory.mktemp("comparison")
    with weir.serve("work", delay="1ms", mix="good=1") as service:
        base = weir.load(f"{service.url}/api/work", connections=2, requests=2000).to_dict()
    for side, factor, turn in [("old", 1.0, 0), ("new", 0.9, 5)]:
        (folder / side).mkdir()
        for i in range(5):
            rate = base["rate_per_s"]["achieved"] * factor * (1 + i % 3 / 500)
            reasons = ["Two of <these>."] if side == "new" and i in (1, 3) else []
            changed = {
                "rate_per_s": {"offered": rate, "achieved": rate},
                "trust": {"ok": not reasons, "reasons": reasons},
                "manifest": base["manifest"] | {"started_unix_s": 1e9 + i * 10 + turn},
            }
            (folder / side / f"{i}.json").write_text(json.dumps(base | changed))
    page = folder / "page.html"
    sides = [str(folder / "old"), str(folder / "new")]
    return Made(page, run("compare", *sides, "--format", "json", "--html", str(page), code=1), folder)


@pytest.fixture(scope="module")
def capacity(tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder = tmp_path_factory.mktemp("capacity")
    page = folder / "page.html"
    with weir.serve("work", delay="5ms", mix="good=1") as service:
        bounds = [
            "--from",
            "50",
            "--to",
            "100",
            "--step-time",
            "3s",
            "--warmup",
            "0s",
            "--slo",
            "p50<2s",
            "--precision",
            "100%",
        ]
        data = run("capacity", f"{service.url}/api/work", *bounds, "--format", "json", "--html", str(page))
    return Made(page, data, folder)


def run(*args: str, code: int = 0) -> dict[str, Any]:
    """Run weir and parse its output."""
    done = programs.weir(*args, "--quiet", timeout_s=300)
    assert done.returncode == code, done.stderr
    data: dict[str, Any] = json.loads(done.stdout)
    return data


@pytest.fixture(params=["study", "comparison", "capacity"])
def made(request: pytest.FixtureRequest) -> Made:
    """Each of the reports."""
    page: Made = request.getfixturevalue(request.param)
    return page


Show = Callable[[Made], str]


@pytest.fixture
def show(browser: Browser) -> Show:
    """Open a page, and return its text."""

    def show(made: Made) -> str:
        browser.size(1200, 900)
        browser.prefer("light")
        assert browser.open(made.page.as_uri()) < 10
        assert browser.requests() == [made.page.as_uri()]
        return made.page.read_text()

    return show


def rows(study: Made, name: str) -> list[dict[str, str]]:
    """Numbers of a plot of a study."""
    with (study.folder / "plots" / f"{name}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def at(rows: list[dict[str, str]], x: float) -> list[float]:
    return [float(row["y"]) for row in rows if float(row["x"]) == x]


def text(browser: Browser, selector: str) -> str:
    return str(browser.evaluate(f"document.querySelector({selector!r}).innerText"))


def test_each_report_is_small_and_drawn_without_errors(browser: Browser, made: Made, show: Show) -> None:
    assert len(show(made)) < 1_000_000
    drawn = plots(browser)
    assert drawn
    for plot in drawn:
        # With few responses there are no high percentiles.
        assert plot["lines"], plot["title"]
        assert max(plot["lines"]) > 200, plot["title"]
    assert browser.complaints() == []
    assert text(browser, ".verdict h2")


def test_the_verdict_of_a_study_comes_first_and_has_its_summary(browser: Browser, study: Made, show: Show) -> None:
    page = show(study)
    verdict = text(browser, ".verdict")
    for sentence in study.data["summary"] + study.data["limitations"]:
        assert sentence.replace("  ", " ") in verdict
    assert "broken fails in 6 of 6 measurements" in verdict
    assert browser.evaluate("document.querySelector('main').firstElementChild.className").startswith("verdict")
    assert "sesame" not in page
    assert "no <table> here" in text(browser, "main")
    assert browser.evaluate("document.querySelector('h1').innerText") == "Does <b>waiting</b> matter?"


@pytest.mark.parametrize(
    ("title", "name"),
    [("work: successes", "work-successes"), ("work: p99", "work-p99"), ("memory peak", "memory-peak")],
)
def test_a_plot_of_a_study_has_the_numbers_of_its_file(
    browser: Browser, study: Made, show: Show, title: str, name: str
) -> None:
    show(study)
    data = rows(study, name)
    focus(browser, title)
    for key, x in [("Home", 1), ("End", 2)]:
        browser.press(key)
        assert shown(browser, title) == pytest.approx(at(data, x), rel=1e-6), key
    measurements = [
        measurement
        for measurement in study.data["measurements"]
        if measurement["variant"] == "fast" and measurement["point"] == [["connections", "2"]]
    ]
    if name == "work-successes":
        rates = sorted(measurement["loads"][0]["rate_per_s"] for measurement in measurements)
        assert shown(browser, title)[0] == pytest.approx(rates[1], rel=1e-6)


def test_untrusted_measurements_are_hollow_and_marked(browser: Browser, study: Made, show: Show) -> None:
    show(study)
    focus(browser, "work: successes")
    hollow = browser.evaluate("document.activeElement.querySelectorAll('.dot.hollow').length")
    untrusted = [row for row in rows(study, "work-successes") if row["untrusted"] == "true"]
    assert hollow == len(untrusted) >= 2
    assert {"slow"} <= {row["series"] for row in untrusted}
    browser.press("End")
    legend = browser.evaluate("document.activeElement.closest('figure').querySelector('.legend').innerText")
    assert legend.count("not trusted") == len([row for row in untrusted if row["x"] == "2"])


def test_load_and_machine_are_on_one_axis_of_time(browser: Browser, study: Made, show: Show) -> None:
    show(study)
    suffix = " over time at connections=2"
    titles = [plot["title"] for plot in plots(browser) if plot["title"].endswith(suffix)]
    assert titles == [f"{what}{suffix}" for what in ("work: successes", "work: p99", "CPU", "memory")]
    assert "other points are in plots/." in text(browser, "main")
    data = rows(study, "work-successes-over-time-connections-2")
    assert {row["series"] for row in data} == {"fast", "slow"}
    focus(browser, titles[0])
    browser.press("Home")
    browser.press("ArrowRight")
    assert shown(browser, titles[0]) == pytest.approx(at(data, 1), rel=1e-6)
    memory = rows(study, "memory-over-time-connections-2")
    if len(at(memory, 1)) == 2:
        assert shown(browser, titles[3]) == pytest.approx(at(memory, 1), rel=1e-6)
    assert {chart(browser, title)["where"] for title in titles} == {"at 1\u00a0s"}


def test_a_comparison_shows_the_numbers_of_its_verdicts(browser: Browser, comparison: Made, show: Show) -> None:
    show(comparison)
    [pair] = comparison.data["pairs"]
    figures = browser.evaluate("""
        [...document.querySelectorAll(".figures data")].map((figure) => Number(figure.value))
    """)
    assert figures == pytest.approx([verdict["other"] for verdict in pair["verdicts"]])
    assert text(browser, ".verdict h2").startswith("B vs A: worse: rate")
    assert "2 of 5 runs of B are not trusted." in text(browser, ".verdict")
    focus(browser, "rate")
    for key, i in [("Home", 0), ("ArrowRight", 1), ("End", 4)]:
        browser.press(key)
        runs = [json.loads((comparison.folder / side / f"{i}.json").read_text()) for side in ("old", "new")]
        assert shown(browser, "rate") == pytest.approx([run["rate_per_s"]["achieved"] for run in runs], rel=1e-6)
    assert browser.evaluate("document.activeElement.querySelectorAll('.dot.hollow.h1').length") == 2
    bars = browser.evaluate("[...document.querySelectorAll('.bars svg')].map((bar) => bar.getAttribute('class'))")
    assert bars[:2] == ["h0", "hollow h1"]


def test_a_capacity_report_has_every_load_level(browser: Browser, capacity: Made, show: Show) -> None:
    show(capacity)
    steps = capacity.data["steps"]
    assert browser.evaluate("document.querySelectorAll('.scroll tbody tr').length") == len(steps)
    last = {step["load"]: step for step in steps}
    focus(browser, "Response time")
    for key, load in [("Home", min(last)), ("End", max(last))]:
        browser.press(key)
        expected = [last[load]["p50_ms"], last[load]["p99_ms"]]
        assert shown(browser, "Response time") == pytest.approx(expected, rel=1e-6)
    assert "p50<2s" in browser.evaluate("document.activeElement.querySelector('svg').textContent")


def test_no_report_is_wider_than_a_phone(browser: Browser, made: Made, show: Show) -> None:
    show(made)
    browser.size(360, 740, touch=True)
    assert browser.evaluate("document.documentElement.scrollWidth") == 360


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_an_accessibility_checker_finds_nothing_in_any_report(
    browser: Browser, made: Made, show: Show, scheme: str
) -> None:
    show(made)
    browser.prefer(scheme)
    browser.evaluate("document.querySelectorAll('details').forEach((it) => { it.open = true; })")
    focus(browser, plots(browser)[0]["title"])
    browser.press("End")
    result = axe(browser)
    assert result.bad == []
    assert "color-contrast" in result.good
