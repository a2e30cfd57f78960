"""`weir.compare`: the verdicts of the command line, for runs in memory and in files."""

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import Service
from jsonschema import Draft202012Validator
from test_schema import assert_closed, assert_same

import weir

SCHEMA: dict[str, Any] = json.loads(
    (Path(__file__).parents[2] / "docs" / "schema" / "compare.schema.json").read_text("utf-8")
)


def runs(run: weir.Run, factor: float, turn: int) -> list[weir.Run]:
    """Make five runs of one, with its throughput times a factor, interleaved with others by their start times."""

    def made(i: int) -> weir.Run:
        data = run.to_dict()
        rate = data["rate_per_s"]["achieved"] * factor * (1 + i % 3 / 1000)
        data["rate_per_s"] = {"offered": rate, "achieved": rate}
        data["trust"] = {"ok": True, "reasons": []}
        data["manifest"]["started_unix_s"] = 1e9 + i * 10 + turn
        return weir.Run.from_json(json.dumps(data))

    return [made(i) for i in range(5)]


@pytest.fixture
def run(service: Service) -> weir.Run:
    return weir.load(service.url, connections=2, requests=300)


def test_runs_in_memory_and_in_files_have_the_same_verdicts(run: weir.Run, tmp_path: Path) -> None:
    old, new = runs(run, 1.0, 0), runs(run, 0.8, 5)
    for side, name in [(old, "old"), (new, "new")]:
        (tmp_path / name).mkdir()
        for i, one in enumerate(side):
            (tmp_path / name / f"{i}.json").write_text(one.to_json())
    found = weir.compare(old, new)
    of_files = weir.compare(tmp_path / "old", str(tmp_path / "new"))
    assert found.pairs == of_files.pairs
    assert found.is_worse
    rate = found.pairs[0].verdict("rate")
    assert rate.finding == "worse"
    assert rate.effect == pytest.approx(0.8)
    assert [side.name for side in found.sides] == ["A", "B"]
    assert not weir.compare(old, old[:3], metric="rate").is_worse
    with pytest.raises(KeyError):
        found.pairs[0].verdict("p12")


def test_a_comparison_has_every_format(run: weir.Run, tmp_path: Path) -> None:
    found = weir.compare(run, [run])
    assert "one run" in str(found)
    assert "### " in found.markdown()
    assert found.to_dict() == json.loads(found.to_json())
    assert found.html(tmp_path / "page.html") == (tmp_path / "page.html").read_text()
    assert repr(found) == "<weir.Comparison B vs A: inconclusive>"


def test_the_classes_have_the_schemas_fields_and_types(run: weir.Run) -> None:
    assert_closed(SCHEMA)
    assert_same("Comparison", weir.Comparison, SCHEMA, SCHEMA)
    for found in (weir.compare(run, run), weir.compare(runs(run, 1.0, 0), runs(run, 0.8, 5))):
        errors = [error.message for error in Draft202012Validator(SCHEMA).iter_errors(found.to_dict())]
        assert errors == []


def test_invalid_sides_are_usage_errors(run: weir.Run, tmp_path: Path) -> None:
    with pytest.raises(weir.UsageError, match="no run on this side"):
        weir.compare(run, [])
    with pytest.raises(weir.UsageError, match="nowhere"):
        weir.compare(run, tmp_path / "nowhere")
    with pytest.raises(weir.UsageError, match="unknown metric 'speed'"):
        weir.compare(run, run, metric="speed")
