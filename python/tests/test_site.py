"""The documentation's site: it builds without a warning, has all that it is to have, and is searched in a browser."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote

import pytest
from browser import Browser
from naming import ROOT
from pages import axe
from programs import finished

pytestmark = pytest.mark.wide

SITE = ROOT / "docs" / "site"
TIMEOUT_S = 550


def needs_sphinx() -> None:
    missing = [
        name for name in ("sphinx", "furo", "myst_parser", "sphinx_copybutton") if not importlib.util.find_spec(name)
    ]
    if missing:
        pytest.skip(f"no {', '.join(missing)}; scripts/setup.sh test-all installs the group docs")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the built site."""
    needs_sphinx()
    out = tmp_path_factory.mktemp("site") / "html"
    done = finished(sys.executable, str(SITE / "make_site.py"), "--out", str(out), timeout_s=TIMEOUT_S, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    return out


def test_each_page_of_the_documentation_is_on_the_site_and_beside_it_as_markdown(built: Path) -> None:
    sources = [path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md") if "site" not in path.parts]
    assert len(sources) > 100
    for source in sources:
        name = source.with_name("index") if source.name == "README.md" else source.with_suffix("")
        assert (built / f"{name}.html").is_file(), source
        assert (built / f"{name}.md").is_file(), source


def test_each_command_has_a_page_with_its_flags(built: Path) -> None:
    for command in ("load", "capacity", "serve/work", "send/list", "gate"):
        page = (built / "commands" / f"{command}.html").read_text("utf-8")
        listed = finished(sys.executable, "-m", "weir", *command.split("/"), "--help").stdout
        flags = re.findall(r"^ +(?:-\w, )?(--[a-z][a-z0-9-]+)", listed, re.M)
        assert flags
        base = f"cmdoption-weir-{command.replace('/', '-')}"
        assert [flag for flag in flags if f'id="{base}-{flag.lstrip("-")}"' not in page] == []


def test_python_names_have_entries(built: Path) -> None:
    import weir  # noqa: PLC0415  the other tests need no build

    text = "".join(page.read_text("utf-8") for page in (built / "python-api").glob("*.html"))
    lacking = [name for name in weir.__all__ if name != "__version__" and f'id="weir.{name}"' not in text]
    assert lacking == []


def test_schemas_are_there_to_download(built: Path) -> None:
    for schema in (ROOT / "docs" / "schema").glob("*.schema.json"):
        assert json.loads((built / schema.name).read_text("utf-8")) == json.loads(schema.read_text("utf-8"))


def test_llms_txt_lists_pages_that_exist(built: Path) -> None:
    text = (built / "llms.txt").read_text("utf-8")
    listed = re.findall(r"^- \[.+\]\((.+\.md)\): \S", text, re.M)
    assert len(listed) > 100
    assert [name for name in listed if not (built / name).is_file()] == []
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


class _Handler(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


@pytest.fixture(scope="module")
def address(built: Path) -> Iterator[str]:
    """Address of the site, as `python -m http.server` serves it."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, directory=str(built))) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("task", TASKS)
def test_a_task_is_solved_from_the_search(task: str, address: str, browser: Browser) -> None:
    query, page, text = TASKS[task]
    browser.size(1280, 800)
    browser.open(f"{address}/search.html?q={quote(query)}")
    results = [result.partition("#")[0].partition("?")[0] for result in browser.evaluate(RESULTS)]
    found = list(dict.fromkeys(results))
    assert page in found[:MAX_RANK], found[:20]
    browser.open(f"{address}/{page}")
    assert text in browser.evaluate("document.querySelector('article').innerText")


def test_search_needs_no_server(built: Path, browser: Browser) -> None:
    browser.open(f"{(built / 'search.html').as_uri()}?q=hedge")
    assert browser.evaluate(RESULTS)


@pytest.mark.parametrize("width", [1280, 375])
@pytest.mark.parametrize(
    "page", ["index.html", "load.html", "commands/load.html", "python-api/load.html", "glossary.html"]
)
def test_a_page_fits_its_window_and_loads_nothing_from_elsewhere(
    page: str, width: int, address: str, browser: Browser
) -> None:
    browser.size(width, 800)
    browser.open(f"{address}/{page}")
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    loaded = browser.evaluate("performance.getEntriesByType('resource').map((entry) => entry.name)")
    assert loaded
    assert [url for url in loaded if not url.startswith(address)] == []


ONE_OF_EACH_KIND = [
    "index.html", "start.html", "load.html", "scenarios/hurl.html", "scripts/python.html", "gate/policies.html",
    "commands/load.html", "python-api/async-client.html", "schemas/run.html", "glossary.html", "benchmarks.html",
    "coming-from/gatling.html", "search.html", "genindex.html",
]  # fmt: skip
"""Pages with each kind of content: prose, tables, code of each language, what is made from the program, lists."""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_have_no_fault_of_accessibility(scheme: str, built: Path, address: str, browser: Browser) -> None:
    """All pages, some minutes of them, are tried where ``WEIR_SITE_PAGES`` is ``all``."""
    pages = ONE_OF_EACH_KIND
    if os.environ.get("WEIR_SITE_PAGES") == "all":
        pages = sorted(page.relative_to(built).as_posix() for page in built.rglob("*.html"))
    browser.size(1280, 800)
    browser.prefer(scheme)
    faults = []
    for page in pages:
        browser.open(f"{address}/{page}")
        faults += [(page, rule, nodes[:3]) for rule, nodes in axe(browser).bad]
    assert faults == []


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
def test_the_keyboard_reaches_links_in_their_order(page: str, address: str, browser: Browser) -> None:
    browser.size(1280, 800)
    browser.open(f"{address}/{page}")
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
