"""The suite's own scripts: which part of it a test in Rust is in, and which tests failed in the last runs."""

from __future__ import annotations

import importlib
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from naming import ROOT

pytestmark = pytest.mark.wide


@pytest.fixture(scope="module")
def scripts() -> Iterator[Path]:
    """Folder of the scripts, importable."""
    folder = ROOT / "scripts"
    sys.path.insert(0, str(folder))
    yield folder
    sys.path.remove(str(folder))


@pytest.fixture
def flaky(scripts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script of failures, with a file of its own."""
    module = importlib.import_module("flaky")
    monkeypatch.setattr(module, "KEPT", tmp_path / "suite" / "flaky.json")
    return module


@pytest.mark.parametrize(
    ("program", "test", "part"),
    [
        ("it", "load_open::requests_are_even", ""),
        ("it", "load_open::timed::requests_are_even", "timed"),
        ("it", "record::browser::wide::a_page_is_recorded", "wide"),
        ("wide", "words", "wide"),
        ("timed", "send_redis::keys_are_shared", "timed"),
        # Names of modules and programs count, and parts of names or a test's own do not.
        ("weir_load", "untimed::a", ""),
        ("it", "gate::timed", ""),
    ],
)
def test_the_place_of_a_test_in_rust_is_its_part(scripts: Path, program: str, test: str, part: str) -> None:
    assert importlib.import_module("rust_tests").part_of(program, test) == part


def test_no_test_has_a_second_chance() -> None:
    for script in ("rust_tests.py", "python_tests.py", "test.sh"):
        assert not re.search("rerun|lastfailed|--lf|--reruns", (ROOT / "scripts" / script).read_text("utf-8")), script


def test_a_test_that_failed_is_listed_until_ten_runs_have_not_had_it(flaky: ModuleType) -> None:
    runs: list[dict[str, object]] = []
    for number in range(11):
        failed = {0: ["it::old"], 1: ["it::a", "it::b"], 3: ["it::a"]}.get(number, [])
        runs = flaky.kept([*runs, {"suite": "test", "at": f"day {number}", "commit": "", "failed": failed}], "test")
        runs = flaky.kept([*runs, {"suite": "test-all", "at": "then", "commit": "abc", "failed": ["c"]}], "test-all")
    assert flaky.lines(runs, "test") == [
        "failed in 2 of the last 10 runs, last on day 3 at no commit: it::a",
        "failed in 1 of the last 10 runs, last on day 1 at no commit: it::b",
    ]
    assert flaky.lines(runs, "test-all") == ["failed in 10 of the last 10 runs, last on then at abc: c"]


@pytest.mark.parametrize(
    ("line", "test"),
    [
        ("load_open::timed::a", "load_open::timed::a"),
        ("t/test_a.py::test_b - assert 1 == 2", "t/test_a.py::test_b"),
        ("t/test_a.py::test_b[a - b] - KeyError: x[1]", "t/test_a.py::test_b[a - b]"),
        ("could not compile `weir-net` (lib)", "could not compile `weir-net` (lib)"),
    ],
)
def test_the_reason_of_a_failure_is_no_part_of_its_name(flaky: ModuleType, line: str, test: str) -> None:
    assert flaky.test_of(line) == test


def test_runs_are_kept_in_a_file(
    flaky: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(text: str) -> str:
        monkeypatch.setattr(sys, "argv", ["flaky.py", "test"])
        monkeypatch.setattr(sys, "stdin", iter(text.splitlines()))
        assert flaky.main() == 0
        return capsys.readouterr().out

    assert run("") == ""
    assert run("it::a\n\nit::a\n").endswith(": it::a\n")
    assert run("").startswith("failed in 1 of the last 3 runs")
    assert [run["failed"] for run in json.loads(flaky.KEPT.read_text())["runs"]] == [[], ["it::a"], []]
    flaky.KEPT.write_text("[]")
    assert run("") == ""
