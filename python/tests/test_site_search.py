"""Search of the documentation's site, in a browser: ten tasks of a new user, each solved in two clicks."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote

import pytest
from browser import Browser
from test_site import built  # noqa: F401  the fixture

RESULTS = """new Promise((done) => {
    const list = () => [...document.querySelectorAll("#search-results li a")].map((a) => a.getAttribute("href"));
    const look = () => Search._pulse_status < 0 ? done(list()) : setTimeout(look, 20);
    look();
})"""
"""Addresses of results, in order, once the search has ended."""

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
def address(built: Path) -> Iterator[str]:  # noqa: F811
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
    found = [result.partition("#")[0].partition("?")[0] for result in browser.evaluate(RESULTS)]
    assert page in found[:MAX_RANK], found[:20]
    browser.open(f"{address}/{page}")
    assert text in browser.evaluate("document.querySelector('article').innerText")


def test_search_needs_no_server(built: Path, browser: Browser) -> None:  # noqa: F811
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
