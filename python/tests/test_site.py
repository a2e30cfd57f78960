"""The documentation's site: it builds without a warning, has all that it is to have, and is searched in a browser."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from urllib.parse import quote

import pytest
from browser import Browser
from naming import ROOT
from programs import finished

pytestmark = pytest.mark.wide


def test_each_page_of_the_documentation_is_on_the_site_and_beside_it_as_markdown(site: Path) -> None:
    sources = [path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md") if "site" not in path.parts]
    assert len(sources) > 100
    for source in sources:
        name = source.with_name("index") if source.name == "README.md" else source.with_suffix("")
        assert (site / f"{name}.html").is_file(), source
        assert (site / f"{name}.md").is_file(), source


def test_each_command_has_a_page_with_its_flags(site: Path) -> None:
    for command in ("load", "capacity", "serve/work", "send/list", "gate"):
        page = (site / "commands" / f"{command}.html").read_text("utf-8")
        listed = finished(sys.executable, "-m", "weir", *command.split("/"), "--help").stdout
        flags = re.findall(r"^ +(?:-\w, )?(--[a-z][a-z0-9-]+)", listed, re.M)
        assert flags
        base = f"cmdoption-weir-{command.replace('/', '-')}"
        assert [flag for flag in flags if f'id="{base}-{flag.lstrip("-")}"' not in page] == []


def test_python_names_have_entries(site: Path) -> None:
    import weir  # noqa: PLC0415  the other tests need no build

    text = "".join(page.read_text("utf-8") for page in (site / "python-api").glob("*.html"))
    lacking = [name for name in weir.__all__ if name != "__version__" and f'id="weir.{name}"' not in text]
    assert lacking == []


def test_schemas_are_there_to_download(site: Path) -> None:
    for schema in (ROOT / "docs" / "schema").glob("*.schema.json"):
        assert json.loads((site / schema.name).read_text("utf-8")) == json.loads(schema.read_text("utf-8"))


def test_llms_txt_lists_pages_that_exist(site: Path) -> None:
    text = (site / "llms.txt").read_text("utf-8")
    listed = re.findall(r"^- \[.+\]\((.+\.md)\): \S", text, re.M)
    assert len(listed) > 100
    assert [name for name in listed if not (site / name).is_file()] == []
    assert {"load.md", "commands/load.md", "python-api/load.md", "schemas/run.md"} <= set(listed)


RESULTS = """new Promise((done) => {
    const list = () => [...document.querySelectorAll("#search-results li a")].map((a) => a.getAttribute("href"));
    const look = () => Search.title.innerText === "Search Results" ? done(list()) : setTimeout(look, 20);
    look();
})"""
"""Addresses of results, in order, once the search has ended; its dots may go on after that."""

MAX_RANK = 5
"""A result below it is not seen without scrolling."""

TASKS = {
    "make the build fail when p99 is over 200 ms": ("fail build", "ci.html", "--slo"),
    "which status codes came when": ("status codes when", "how-to/read-a-report.html", "--csv"),
    "add a hedge": ("hedge", "gate/policies.html", "after ="),
    "log in before the requests": ("login token", "how-to/login.html", "[Captures]"),
    "find out how many users a service takes": ("capacity users", "how-to/capacity.html", "--closed"),
    "see whether a change made it slower": ("compare commits", "how-to/two-commits.html", "weir compare"),
    "send failed jobs again": ("send failed jobs again", "how-to/queue.html", "weir send retry"),
    "replay an access log at twice the speed": ("replay access log speed", "replay.html", "--speed"),
    "load from several machines": ("several machines", "agents.html", "--on"),
    "what does a field of the JSON mean": ("lateness_ms", "schemas/run.html", "lateness_ms"),
}
"""Tasks: what is typed, the page that has it, and what is to be found there."""


@pytest.mark.parametrize("task", TASKS)
def test_a_task_is_solved_from_the_search(task: str, site_address: str, browser: Browser) -> None:
    query, page, text = TASKS[task]
    browser.size(1280, 800)
    browser.open(f"{site_address}/search.html?q={quote(query)}")
    results = [result.partition("#")[0].partition("?")[0] for result in browser.evaluate(RESULTS)]
    found = list(dict.fromkeys(results))
    assert page in found[:MAX_RANK], found[:20]
    browser.open(f"{site_address}/{page}")
    assert text in browser.evaluate("document.querySelector('article').innerText")


def test_search_needs_no_server(site: Path, browser: Browser) -> None:
    browser.open(f"{(site / 'search.html').as_uri()}?q=hedge")
    assert browser.evaluate(RESULTS)


@pytest.mark.parametrize("width", [1280, 375])
@pytest.mark.parametrize(
    "page", ["index.html", "load.html", "commands/load.html", "python-api/load.html", "glossary.html"]
)
def test_a_page_fits_its_window_and_loads_nothing_from_elsewhere(
    page: str, width: int, site_address: str, browser: Browser
) -> None:
    browser.size(width, 800)
    browser.open(f"{site_address}/{page}")
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    loaded = browser.evaluate("performance.getEntriesByType('resource').map((entry) => entry.name)")
    assert loaded
    assert [url for url in loaded if not url.startswith(site_address)] == []


FOCUS = """(() => {
    const all = [...document.querySelectorAll("a[href], button, input, label, summary, [tabindex]")];
    const element = document.activeElement;
    const box = element.getBoundingClientRect();
    return {
        index: all.indexOf(element),
        name: `${element.tagName} ${element.innerText || element.getAttribute("aria-label") || ""}`.trim(),
        seen: box.width > 0 && box.height > 0 && getComputedStyle(element).visibility === "visible",
        marked: getComputedStyle(element).outlineStyle !== "none" || getComputedStyle(element).boxShadow !== "none",
    };
})()"""
"""What has the focus: its place on the page, its name, whether it can be seen, and whether it is marked."""


@pytest.mark.parametrize("page", ["index.html", "load.html", "commands/load.html", "python-api/load.html"])
def test_the_keyboard_reaches_links_in_their_order(page: str, site_address: str, browser: Browser) -> None:
    browser.size(1280, 800)
    browser.open(f"{site_address}/{page}")
    places, unseen = [], []
    for _ in range(60):
        browser.press("Tab")
        focus = browser.evaluate(FOCUS)
        places.append(focus["index"])
        if not (focus["seen"] and focus["marked"]):
            unseen.append(focus["name"])
    assert len(set(places)) == len(places), "the keyboard is trapped"
    assert places == sorted(places)
    assert unseen == []
