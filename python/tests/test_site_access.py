"""The documentation's site is read by a reader without its colours, in both of its schemes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from browser import Browser
from pages import axe

pytestmark = pytest.mark.wide

ONE_OF_EACH_KIND = [
    "index.html", "start.html", "load.html", "scenarios/hurl.html", "scripts/python.html", "gate/policies.html",
    "commands/load.html", "python-api/async-client.html", "schemas/run.html", "glossary.html", "benchmarks.html",
    "coming-from/gatling.html", "search.html", "genindex.html",
]  # fmt: skip
"""Pages with each kind of content: prose, tables, code of each language, what is made from the program, lists."""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_have_no_fault_of_accessibility(scheme: str, site: Path, site_address: str, browser: Browser) -> None:
    """All pages, some minutes of them, are tried where ``WEIR_SITE_PAGES`` is ``all``."""
    pages = ONE_OF_EACH_KIND
    if os.environ.get("WEIR_SITE_PAGES") == "all":
        pages = sorted(page.relative_to(site).as_posix() for page in site.rglob("*.html"))
    browser.size(1280, 800)
    browser.prefer(scheme)
    faults = []
    for page in pages:
        browser.open(f"{site_address}/{page}")
        faults += [(page, rule, nodes[:3]) for rule, nodes in axe(browser).bad]
    assert faults == []
