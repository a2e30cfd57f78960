"""What tests of pages ask of a page that is open in a browser."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from browser import Browser

AXE = Path(__file__).parents[2] / ".venv/axe/node_modules/axe-core/axe.min.js"


def plots(browser: Browser) -> list[dict[str, Any]]:
    """What stands at the charts: title, drawn lines and their widths, legend with values, whether all is in sight."""
    found: list[dict[str, Any]] = browser.evaluate("""
        [...document.querySelectorAll("figure.chart")].map((figure) => ({
            title: figure.querySelector("h3").textContent,
            lines: [...figure.querySelectorAll("path.line")].map((line) => line.getBBox().width),
            values: [...figure.querySelectorAll(".legend data")].map((data) => data.getAttribute("value")),
            where: figure.querySelector(".where").textContent,
            text: figure.querySelector(".plot").getAttribute("aria-valuetext"),
            zoomed: !figure.querySelector(".out").disabled,
        }))
    """)
    return found


def chart(browser: Browser, title: str) -> dict[str, Any]:
    return next(plot for plot in reversed(plots(browser)) if plot["title"] == title)


def focus(browser: Browser, title: str) -> dict[str, float]:
    """Give a chart the keyboard and return where it is."""
    place: dict[str, float] = browser.evaluate(f"""
        (() => {{
            const figures = [...document.querySelectorAll("figure.chart")].reverse();
            const plot = figures.find((f) => f.querySelector("h3").textContent === {title!r}).querySelector(".plot");
            plot.scrollIntoView({{ block: "center" }});
            plot.focus();
            const box = plot.getBoundingClientRect();
            return {{ left: box.left, top: box.top, width: box.width, height: box.height }};
        }})()
    """)
    return place


def shown(browser: Browser, title: str) -> list[float]:
    return [float(value) for value in chart(browser, title)["values"]]


@dataclass(frozen=True)
class Checked:
    """Result of an accessibility checker."""

    bad: list[tuple[str, list[str]]]
    """Rules that are broken, and by what."""
    good: set[str]
    """Rules that are kept."""


def axe(browser: Browser) -> Checked:
    """Ask a checker of accessibility about the page as it is now."""
    if not AXE.exists():
        pytest.skip("axe-core is not installed; scripts/setup.sh test-all does that")
    browser.evaluate(AXE.read_text() + "; 0")
    result = browser.evaluate("axe.run().then((r) => ({ bad: r.violations, good: r.passes.map((rule) => rule.id) }))")
    bad = [(rule["id"], [node["html"] for node in rule["nodes"]]) for rule in result["bad"]]
    return Checked(bad, set(result["good"]))
