"""README.md: its blocks run in order, in one folder, as a reader types them; output and pictures are of this weir."""

from __future__ import annotations

import html
import importlib.util
import os
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
from browser import Browser
from naming import ROOT
from page_blocks import blocks
from page_script import script
from programs import binary, started, weir

pytestmark = pytest.mark.wide

PORTS = ("8080", "8081", "8082")
TIMEOUT_S = 240
MAX_LINES = 100

FILES = ROOT / "examples" / "bring"
"""Files of other tools, which a reader has in the folder."""

SHORTER = [
    (r"-d (10s|30s)\b", "-d 1s"),
    (r"-d 5s\b", "-d 300ms"),
    (r"--users 100", "--users 10"),
    (r"--think 1s\.\.3s", "--think 1ms..3ms"),
    (r"-s (plan\.jmx|script\.js)", r"-s \1 -d 1s"),
    (r"weir capacity ", "weir capacity --step-time 3s --max-time 10s "),
]
"""Durations in place of those of the page, so that it takes seconds."""

EXIT_CODES: dict[str, set[int] | None] = {
    # These are this very suite, and the demo that has a test of its own; pip has installed what is tested.
    "make ": None,
    "pip install": None,
    # Objectives, and differences between short runs, depend on how busy the machine is.
    "weir capacity": {0, 1, 3},
    "--slo": {0, 1},
    "weir compare": {0, 1},
}


def test_it_is_one_screen_of_a_browser() -> None:
    lines = (ROOT / "README.md").read_text("utf-8").splitlines()
    assert len(lines) <= MAX_LINES


def test_the_blocks_run_in_order_in_one_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def allowed(command: str) -> set[int] | None:
        return next((codes for text, codes in EXIT_CODES.items() if text in command), {0})

    text = script("README.md", tmp_path, ports=PORTS, shorter=SHORTER, exit_codes=allowed, runs_python=True)
    assert text.count("weir load") > 8
    shop = re.findall(r"weir serve shop --port (\d+)", text)[0]
    named = {name for name in os.listdir(FILES) if re.search(rf" {re.escape(name)}\b", text)}
    assert named == set(os.listdir(FILES)) - {"README.md"}, "each file has its line, and each line its file"
    for name in named:
        (tmp_path / name).write_text((FILES / name).read_text("utf-8").replace("8081", shop))
    file = tmp_path / "readme.sh"
    file.write_text(text)
    monkeypatch.setenv("TOKEN", "a-token")
    # Locustfiles run in the Python that is found first.
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    with started("bash", str(file), cwd=tmp_path) as process:
        out, err = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 0, f"{out}\n{err}"
    assert len((tmp_path / "results.jsonl").read_text().splitlines()) == 100
    assert (tmp_path / "run.html").stat().st_size > 0


def test_the_output_of_the_first_load_is_that_of_this_weir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    [block] = [block for block in blocks("README.md", "console") if "--html" in block]
    serve, load, *printed = block.splitlines()
    assert 10 <= len(printed) <= 14
    monkeypatch.chdir(tmp_path)
    options = shlex.split(serve.removeprefix("$ weir "), comments=True)[:-1]
    options[options.index("8080")] = "0"
    with started(str(binary()), *options) as service:
        assert service.stdout is not None
        url = re.findall(r"http://[\d.:]+", service.stdout.readline())[0]
        done = weir(*shlex.split(load.removeprefix("$ weir ").replace("http://localhost:8080", url)))
    labels = [re.split(r"\s{2,}|  |[\d.,]+", line.strip())[0] for line in printed if line.strip(" .")]
    today = done.stdout.replace(url, "http://localhost:8080")
    assert [label for label in labels if label and label not in today] == [], today


def _maker(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / "site" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _words(picture: str) -> set[str]:
    """Words of a picture, without numbers and their units, which differ from run to run."""
    shown = html.unescape(" ".join(re.findall(r"<text[^>]*>(.*?)</text>", picture)))
    return {word for word in re.findall(r"[A-Za-z][\w.]*", re.sub(r"[\d.,]+\w*", " ", shown)) if len(word) > 2}


def test_the_picture_of_the_html_report_is_of_this_weir(browser: Browser, tmp_path: Path) -> None:
    maker = _maker("html_picture")
    published = maker.words(maker.text_of(maker.PICTURE.read_bytes()))
    assert {"objectives", "percentiles", "throughput"} <= published
    # Long enough for one freeze.
    maker.report(str(binary()), ["--rate", "50", "-d", "6s", *maker.LOAD[4:]], tmp_path / "run.html")
    today = maker.words(maker.shown(browser, tmp_path / "run.html"))
    # A busy machine may add that it distrusts the run, which moves the lowest labels out of sight.
    assert len(published - today) <= 6, f"docs/site/html_picture.py makes it anew: {published - today}"


def test_the_picture_is_of_this_weir() -> None:
    maker = _maker("report_picture")
    # Long enough for one freeze; a busy machine may add that it distrusts the run, or that responses came late.
    printed = maker.report(str(binary()), ["--rate", "50", "-d", "6s", *maker.LOAD[4:]])
    today = maker.picture("weir load http://localhost:8080/ --rate -d --slo p99 --slo errors", printed)
    published = maker.PICTURE.read_text("utf-8")
    # The last row of the distribution is not always there.
    assert _words(published) - _words(today) <= {"above"}, "docs/site/report_picture.py makes it anew"
    shown = re.findall(r"<text[^>]*>(.*?)</text>", published)
    assert "OBJECTIVES MISSED" in shown[3:5], shown[:6]
