"""`weir.simulate`: overload protection in virtual time."""

import json
from pathlib import Path
from typing import Any

import programs
import pytest
from jsonschema import Draft202012Validator
from test_schema import assert_closed, assert_same

import weir

SCHEMA: dict[str, Any] = json.loads(
    (Path(__file__).parents[2] / "docs" / "schema" / "simulation.schema.json").read_text("utf-8")
)
SMALL = "fails-fast"


def test_a_scenario_has_metrics_for_each_limiter() -> None:
    both = weir.simulate(scenario="deadline", limiter=["auto", "static:50"])
    assert [(run.scenario, run.limiter, run.seed) for run in both.runs] == [
        ("deadline", "auto", 1),
        ("deadline", "static:50", 1),
    ]
    static = both.run(limiter="static:50")
    assert static.headline is not None
    assert static.headline == static.scored.goodput
    assert static.headline > 0.9
    assert static.scored.p99_ratio is not None
    assert static.scored.p99_ratio <= 1.01
    assert static.scored.goodput_by_priority[0] is None
    assert static.scored.goodput_by_priority[1] == pytest.approx(0.5, abs=0.05)
    assert [pairing.other for pairing in both.pairings] == ["static:50"]
    with pytest.raises(KeyError):
        both.run("ramp")


def test_a_seed_repeats_a_simulation() -> None:
    assert weir.simulate(scenario=SMALL, seed=7) == weir.simulate(scenario=[SMALL], seed=7)
    assert weir.simulate(scenario=SMALL, seed=7) != weir.simulate(scenario=SMALL, seed=8)


def test_a_simulation_prints_as_the_command() -> None:
    simulation = weir.simulate(scenario=SMALL)
    assert str(simulation) == programs.weir("simulate", f"--scenario={SMALL}").stdout
    assert repr(simulation).startswith("<weir.Simulation fails-fast with auto: ")


@pytest.mark.parametrize(
    ("flags", "named"),
    [
        ({"scenario": "steps"}, "unknown scenario 'steps'"),
        ({"limiter": "static:0"}, "static:0"),
        ({"limiter": "fast"}, "unknown limiter 'fast'"),
        ({"seed": -1}, "seed: -1 is out of range"),
    ],
)
def test_an_invalid_value_is_a_usage_error_of_one_line(flags: dict[str, Any], named: str) -> None:
    with pytest.raises(weir.UsageError) as raised:
        weir.simulate(**flags)
    assert named in str(raised.value)
    assert "\n" not in str(raised.value)


def test_every_simulation_matches_the_schema() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    assert_closed(SCHEMA)
    validator = Draft202012Validator(SCHEMA)
    for scenario, limiter in [("priorities", "auto"), ("long-overload", "static"), (SMALL, "all")]:
        data = weir.simulate(scenario=scenario, limiter=limiter).to_dict()
        assert [f"{error.json_path}: {error.message}" for error in validator.iter_errors(data)] == []
    assert not validator.is_valid({**data, "schema": 3})


def test_the_python_classes_have_the_schemas_fields_and_types() -> None:
    assert_same("Simulation", weir.Simulation, SCHEMA, SCHEMA)
