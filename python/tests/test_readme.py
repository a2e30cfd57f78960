"""README.md: its blocks run in order, in one folder, as a reader types them; its picture is of this weir."""

from __future__ import annotations

import html
import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest
from naming import ROOT
from page_script import script
from programs import binary, started

pytestmark = pytest.mark.wide

PORTS = ("8080", "8081", "8082", "9001", "9999")
TIMEOUT_S = 240

SHORTER = [
    (r"-d (10s|30s|1m)\b", "-d 1s"),
    (r"-d 5s\b", "-d 300ms"),
    (r"--ramp-up 5s", "--ramp-up 100ms"),
    (r"--think 1s\.\.3s", "--think 1ms..3ms"),
    (r"-n 10000", "-n 500"),
    (r"0-200/30s,200/2m", "0-50/1s,50/1s"),
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


def test_the_blocks_run_in_order_in_one_folder(tmp_path: Path) -> None:
    def allowed(command: str) -> set[int] | None:
        return next((codes for text, codes in EXIT_CODES.items() if text in command), {0})

    text = script("README.md", tmp_path, ports=PORTS, shorter=SHORTER, exit_codes=allowed, runs_python=True)
    assert text.count("weir load") > 8
    file = tmp_path / "readme.sh"
    file.write_text(text)
    with started("bash", str(file), cwd=tmp_path) as process:
        out, err = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 0, f"{out}\n{err}"
    assert len((tmp_path / "results.jsonl").read_text().splitlines()) == 100


def _maker() -> Any:
    spec = importlib.util.spec_from_file_location("report_picture", ROOT / "docs" / "site" / "report_picture.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _words(picture: str) -> set[str]:
    """Words of a picture, without numbers and their units, which differ from run to run."""
    shown = html.unescape(" ".join(re.findall(r"<text[^>]*>(.*?)</text>", picture)))
    return {word for word in re.findall(r"[A-Za-z][\w.]*", re.sub(r"[\d.,]+\w*", " ", shown)) if len(word) > 2}


def test_the_picture_is_of_this_weir() -> None:
    maker = _maker()
    # Long enough for one freeze; a busy machine may add that it distrusts the run, or that responses came late.
    printed = maker.report(str(binary()), ["--rate", "50", "-d", "6s", *maker.LOAD[4:]])
    today = maker.picture("weir load http://localhost:8080/ --rate -d --slo p99 --slo errors", printed)
    published = maker.PICTURE.read_text("utf-8")
    # The last row of the distribution is not always there.
    assert _words(published) - _words(today) <= {"above"}, "docs/site/report_picture.py makes it anew"
    shown = re.findall(r"<text[^>]*>(.*?)</text>", published)
    assert "OBJECTIVES MISSED" in shown[3:5], shown[:6]
