"""Methods of a run."""

import copy
import dataclasses
import html
import json
import pickle
import sys
import types
from pathlib import Path
from typing import Any

import programs
import pytest
from conftest import Service

import weir


@pytest.fixture
def run(service: Service) -> weir.Run:
    return weir.load(service.url, connections=2, requests=200, slo="p99<30s")


def test_percentiles_come_from_the_histogram(run: weir.Run) -> None:
    expected = [(50, run.response_ms.p50), (99, run.response_ms.p99), (99.9, run.response_ms.p999)]
    assert [run.percentile(p) for p, _ in expected] == [ms for _, ms in expected]
    assert run.service_percentile(95) == run.service_ms.p95
    assert run.percentile(100) == run.response_ms.max
    steps = [run.percentile(p) for p in range(101)]
    assert steps == sorted(step for step in steps if step is not None)


@pytest.mark.parametrize("percentile", [-0.1, 100.1, float("nan")])
def test_a_percentile_is_from_0_to_100(run: weir.Run, percentile: float) -> None:
    with pytest.raises(weir.UsageError, match=r"percentile.*0 to 100"):
        run.percentile(percentile)


def test_json_round_trips(run: weir.Run) -> None:
    again = weir.Run.from_json(run.to_json())
    assert again == run
    assert again.to_json() == run.to_json()
    assert pickle.loads(pickle.dumps(run)) == run
    assert copy.deepcopy(run) == run


def test_to_dict_is_the_object_of_to_json(run: weir.Run) -> None:
    data = run.to_dict()
    assert data == json.loads(run.to_json())
    assert data["status"] == {"200": 200}
    data.clear()
    assert run.to_dict()["requests"]["total"] == 200


def _without_weir(data: dict[str, Any]) -> None:
    del data["weir"]


def _of_another_schema(data: dict[str, Any]) -> None:
    data["schema"] = 99


def _damaged(data: dict[str, Any]) -> None:
    data["histogram"] = "AAAA"


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (_without_weir, "not a run of weir: missing field `weir`"),
        (_of_another_schema, "a run of schema 99; this weir reads schema 3: measure again"),
        (_damaged, "not an HdrHistogram"),
    ],
)
def test_an_invalid_run_is_a_usage_error(run: weir.Run, damage: Any, words: str) -> None:
    data = run.to_dict()
    damage(data)
    with pytest.raises(weir.UsageError, match=words):
        weir.Run.from_json(json.dumps(data))


def test_a_newer_run_may_have_more_fields(run: weir.Run) -> None:
    data = run.to_dict() | {"colour": "blue"}
    assert weir.Run.from_json(json.dumps(data)) == run


def test_the_html_report_is_that_of_the_command_line(run: weir.Run, tmp_path: Path) -> None:
    saved, page = tmp_path / "run.json", tmp_path / "page.html"
    saved.write_text(run.to_json())
    assert run.html().startswith("<!doctype html>")
    assert programs.weir("report", str(saved), "--html", str(page)).returncode == 0
    assert page.read_text() == run.html()
    written = tmp_path / "written.html"
    assert run.html(written) == run.html(str(written)) == written.read_text()
    with pytest.raises(FileNotFoundError):
        run.html(tmp_path / "no" / "such" / "folder.html")


def test_printing_shows_the_text_report(run: weir.Run) -> None:
    assert str(run) == run.report() == run.report("text")
    assert "p99" in str(run)
    assert "\x1b" not in str(run)


def test_reports_have_the_formats_of_other_tools(run: weir.Run) -> None:
    assert "Requests per second:" in run.report("ab")
    assert "Requests/sec:" in run.report("wrk")
    assert "Throughput" in run.report("jmeter")
    assert run.report("json") == run.to_json()
    with pytest.raises(weir.UsageError, match=r"xml.*text, ab, wrk, jmeter"):
        run.report("xml")  # type: ignore[arg-type]


def test_repr_is_one_line(run: weir.Run) -> None:
    assert repr(run).startswith("<weir.Run closed GET http://127.0.0.1:")
    assert "200 requests, 0 failed" in repr(run)
    assert "\n" not in repr(run)
    with weir.serve("httpbin") as service:
        failed = weir.load(f"{service.url}/status/503", requests=3)
    assert repr(failed).endswith(", no response times>")


def test_nothing_can_be_changed(run: weir.Run) -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        run.requests.total = 1  # type: ignore[misc]
    with pytest.raises(TypeError):
        run.status[200] = 1  # type: ignore[index]
    with pytest.raises(dataclasses.FrozenInstanceError):
        run.duration_s = 1.0  # type: ignore[misc]


def test_the_series_adds_up(run: weir.Run) -> None:
    assert sum(interval.ok for interval in run.series) == run.requests.ok
    assert run.series[0].t_s == 0


def test_a_notebook_shows_the_whole_report_in_a_frame(run: weir.Run) -> None:
    shown = run._repr_html_()
    assert shown.startswith('<iframe srcdoc="')
    assert shown.endswith("</iframe>")
    assert shown.count('"') == 8  # quotes of the report itself are escaped
    source = shown.partition('srcdoc="')[2].partition('"')[0]
    assert html.unescape(source) == run.html()


class FakeFrame:
    """Data frame that keeps what it is made of."""

    def __init__(self, data: dict[str, list[Any]]) -> None:
        """Keep the columns."""
        self.data, self.index = data, ""

    def set_index(self, name: str) -> "FakeFrame":
        """Keep the name of the index."""
        self.index = name
        return self


def test_the_series_becomes_a_data_frame(run: weir.Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", types.SimpleNamespace(DataFrame=FakeFrame))
    frame = run.to_pandas()
    assert frame.index == "t_s"
    assert sum(frame.data["ok"]) == run.requests.ok
    assert frame.data["p99_ms"] == [interval.p99_ms for interval in run.series]
    assert {len(values) for values in frame.data.values()} == {len(run.series)}
    assert not any("histogram" in name for name in frame.data)


def test_without_pandas_the_error_says_how_to_install_it(run: weir.Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pip install pandas"):
        run.to_pandas()
