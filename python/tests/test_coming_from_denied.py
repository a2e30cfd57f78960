"""Pages for users of other tools: what they say is not there, is not there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from naming import ROOT
from programs import weir

pytestmark = pytest.mark.wide

PAGES = ROOT / "docs" / "coming-from"
CONTRACT = ROOT / "python" / "tests" / "contract.txt"

# By page, what is denied as it begins there, and a pattern of the flags and names that would have it.
DENIED = {
    "gatling": {
        "`throttle(": r"--throttle",
        "`.shuffle()`": r"--data-order.*shuffle",
        "`inferHtmlResources()`": r"--resources|--embedded|--parallel",
    },
    "httpx": {
        "`files=`, `stream()`, cookies": r"weir\.Client.*(cookies|files|stream|event_hooks)",
        "`proxy=`, `mounts=`": r"weir\.Client.*(proxy|mounts)",
    },
    "hurl": {"`--from-entry`": r"--(from|to)-entry"},
    "jmeter": {
        "Sharing mode Current thread": r"--data-sharing",
        "HTTP Cache Manager": r"--(http-)?cache|--embedded",
        "Default Value of an extractor": r"--capture-default",
        "Transaction Controller": r"--transaction",
    },
    "tenacity": {
        "`wait_exp_base=2`": r"weir\.retry.*(exp_base|factor)",
        "`attempt.next_wait`": r"weir\.RetryAttempt.*next_wait",
        "hooks that return a context manager": r"weir\.retry.*context_hook",
    },
    "k6": {
        "`externally-controlled`": r"weir\.load.*external",
    },
}

SCHEMES = {"JMS": "jms://127.0.0.1:9/", "MQTT": "mqtt://127.0.0.1:9/"}
"""Protocols that pages deny, with a URL that would have them."""

REJECTED = {
    "externally-controlled": "export const options = { scenarios: { a: { executor: 'externally-controlled' } } };",
    "k6/browser": "import { browser } from 'k6/browser';",
}
"""What the page of k6 denies, and a line of a script that would use it."""

SECTION = {
    "JavaScript": r"weir load.*\.js\b",
    "Playwright": r"(?i)playwright",
    "k6/browser": r"--browser",
    "resources of a page in parallel": r"--resources|--embedded|--parallel",
    "embedded resources": r"--resources|--embedded",
    "Plugins of data": r"--plugin",
    "`--stream-interval`": r"--stream-interval",
    "`events.request.fire`": r"weir\.User.*fire",
    "DNS settings": r"--(dns|resolve)",
    "a record per request through a pipe": r"--out-jsonl-requests",
    "transactions over several steps": r"--transaction",
}
"""What a section denies, and a pattern of the flags and names that would have it."""

THERE = {
    "server-sent events": "--stream",
    "publishing metrics": "--out-prometheus",
    "metrics of the generator": "--out-prometheus",
    "the web UI": "--web",
    "LoadTestShape": "weir.User",
    "conditions": "weir.User",
}
"""What weir has, which no first sentence of a section denies, and a flag or name of it."""


def _pages() -> list[str]:
    return sorted(path.stem for path in PAGES.glob("*.md"))


def _rows(page: str) -> list[str]:
    """First cells of rows that deny something."""
    rows = re.findall(r"^\| (.*?) \| (.*?) \|$", (PAGES / f"{page}.md").read_text(), re.M)
    return [term for term, answer in rows if re.search(r"not available", answer)]


def _section(page: str) -> str:
    """First sentence of the section of what is not available."""
    found = re.search(r"^## Not available\n\n(.*?)(?:\.(?:\s|\Z)|\Z)", (PAGES / f"{page}.md").read_text(), re.M | re.S)
    return " ".join(found[1].split()) if found else ""


@pytest.mark.parametrize("page", _pages())
def test_what_a_page_denies_is_not_there(page: str) -> None:
    contract = CONTRACT.read_text()
    known = DENIED.get(page, {})
    for term in _rows(page):
        pattern = next((pattern for begin, pattern in known.items() if term.startswith(begin)), None)
        assert pattern is not None, f"{page}.md denies {term}: add a pattern of what would have it"
        assert not re.search(pattern, contract), f"{page}.md denies {term}, and {pattern} is there"
    section = _section(page)
    for word, pattern in SECTION.items():
        if word in section:
            assert not re.search(pattern, contract), f"{page}.md denies {word}, and {pattern} is there"
    for word in THERE:
        assert word not in section, f"{page}.md denies {word}, which is there"


def test_what_is_called_there_is_there() -> None:
    contract = CONTRACT.read_text()
    for word, name in THERE.items():
        assert re.search(rf"(?<![\w-]){re.escape(name)}\b", contract), word


@pytest.mark.parametrize("name", REJECTED)
def test_what_the_page_of_k6_denies_is_rejected_before_anything_is_sent(name: str, tmp_path: Path) -> None:
    assert name in (PAGES / "k6.md").read_text("utf-8")
    script = tmp_path / "script.js"
    script.write_text(f"{REJECTED[name]}\nexport default function () {{}}\n")
    done = weir("load", "-s", str(script))
    assert (done.returncode, done.stdout) == (2, "")
    assert f"{name}' is not supported" in done.stderr or f"{name} is not supported" in done.stderr


def test_calls_of_grpc_are_no_steps_of_a_scenario(tmp_path: Path) -> None:
    assert "Calls as steps of `.hurl` files" in (ROOT / "docs" / "load" / "grpc.md").read_text("utf-8")
    scenario = tmp_path / "call.hurl"
    scenario.write_text("GET grpc://127.0.0.1:9/a.B/C\n")
    done = weir("run", str(scenario))
    assert (done.returncode, done.stdout) == (2, "")
    assert "call.hurl:1:5" in done.stderr


@pytest.mark.parametrize("protocol", SCHEMES)
def test_protocols_that_pages_deny_are_usage_errors(protocol: str) -> None:
    assert any(protocol in _section(page) for page in _pages())
    done = weir("load", SCHEMES[protocol], "-n", "1")
    assert done.returncode == 2, done.stderr
    assert "scheme" in done.stderr
