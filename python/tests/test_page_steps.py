"""Charts of steps in Chromium: the slowest are visible, and a reader chooses others in both charts at once."""

import json
from pathlib import Path
from typing import Any

import programs
import pytest
from browser import Browser
from conftest import Service
from pages import axe, plots

import weir

CHARTS = ("Median by step", "99th percentile by step")


def step(index: int, times: dict[str, float]) -> dict[str, Any]:
    """Step whose response times are longer the higher its number."""
    scaled = {name: time * (1 + index) for name, time in times.items()}
    points = [
        {
            "t_s": float(t),
            "width_s": 1.0,
            "ok": t % 7,
            "failed": 0,
            "p50_ms": 1.0 + index,
            "p99_ms": 3.0 + index + t % 5,
        }
        for t in range(60)
    ]
    zeros = ("failed", "redirects", "retries", "unsent", "bytes_in", "bytes_out")
    counts = {"requests": 9, "ok": 9, "untrusted": False} | dict.fromkeys(zeros, 0)
    texts = dict.fromkeys(("scenario", "histogram", "service_histogram"), "")
    lists: dict[str, Any] = {"checks": [], "samples": [], "status": {"200": 9}, "failures": {}, "series": points}
    clocks = dict.fromkeys(("response_ms", "service_ms", "failed_ms", "lateness_ms"), scaled)
    return {"name": f"step {index}", "rate_per_s": 1.0} | counts | texts | lists | clocks


@pytest.fixture
def many(browser: Browser, service: Service, tmp_path: Path) -> Browser:
    """Report of a run of forty steps, open in the browser."""
    data = weir.load(service.url, connections=2, requests=200).to_dict()
    data["series"] = [data["series"][0] | {"t_s": float(t), "width_s": 1.0} for t in range(60)]
    data["steps"] = [step(index, data["response_ms"]) for index in range(40)]
    saved, page = tmp_path / "run.json", tmp_path / "page.html"
    saved.write_text(json.dumps(data))
    assert programs.weir("report", str(saved), "--html", str(page)).returncode == 0
    browser.size(1200, 900)
    browser.open(page.as_uri())
    return browser


def visible(browser: Browser) -> list[int]:
    """Number of lines of each chart of steps."""
    return [len(plot["lines"]) for plot in plots(browser) if plot["title"] in CHARTS]


def click(browser: Browser, title: str, name: str) -> None:
    browser.evaluate(f"""
        (() => {{
            const figure = [...document.querySelectorAll("figure.chart")]
                .find((f) => f.querySelector("h3").textContent === {title!r});
            [...figure.querySelectorAll(".legend button")].find((b) => b.textContent === {name!r}).click();
        }})()
    """)


def test_the_slowest_steps_are_visible_and_a_choice_is_that_of_both_charts(many: Browser) -> None:
    assert visible(many) == [6, 6]
    click(many, CHARTS[0], "step 0")
    assert visible(many) == [7, 7]
    click(many, CHARTS[1], "step 39")
    assert visible(many) == [6, 6]
    click(many, CHARTS[1], "all")
    assert visible(many) == [40, 40]
    click(many, CHARTS[0], "none")
    assert visible(many) == [0, 0]
    assert many.complaints() == []


def test_a_legend_of_forty_names_is_accessible_and_leaves_the_chart_in_sight(many: Browser) -> None:
    heights = many.evaluate("""
        [...document.querySelectorAll("figure.chart")].filter((f) => f.querySelector(".choices"))
            .map((f) => f.querySelector(".legend").offsetHeight)
    """)
    assert len(heights) == len(CHARTS)
    assert max(heights) < 160
    assert axe(many).bad == []
