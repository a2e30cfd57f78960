"""`weir.simulate`: overload in virtual time."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from test_schema import assert_closed, assert_same

import weir

SCHEMA: dict[str, Any] = json.loads((Path(__file__).parents[2] / "docs" / "simulation.schema.json").read_text("utf-8"))
SMALL: dict[str, Any] = {"slots": 5, "service": "10ms..50ms", "duration": "10s"}


def test_a_scenario_has_its_figures_for_each_limit() -> None:
    both = weir.simulate(scenario="deadline", limit=["auto", "static:50"])
    assert [(run.scenario, run.limit, run.seed) for run in both.runs] == [
        ("deadline", "auto", 1),
        ("deadline", "static:50", 1),
    ]
    static = both.run(limit="static:50")
    assert static.headline == static.scored.goodput > 0.9
    assert static.scored.p99_stretch <= 1.01
    assert static.scored.served[0] is None
    assert static.scored.served[1] == pytest.approx(0.5, abs=0.05)
    assert [duel.against for duel in both.duels] == ["static:50"]
    with pytest.raises(KeyError):
        both.run("ramp")


def test_figures_of_ones_own_make_a_world() -> None:
    calm = weir.simulate(load=0.5, limit="none", **SMALL).run()
    assert (calm.scenario, calm.scored.refused, calm.scored.overload) == ("own", 0, False)
    full = weir.simulate(load=5, limit="none", deadline=timedelta(milliseconds=200), **SMALL).run()
    assert full.scored.goodput < 0.2
    assert full.scored.p99_ms == pytest.approx(200)
    assert full.series[0].t_s == 0.5


def test_a_seed_repeats_it() -> None:
    assert weir.simulate(seed=7, **SMALL) == weir.simulate(seed=7, **SMALL)
    assert weir.simulate(seed=7, **SMALL) != weir.simulate(seed=8, **SMALL)


def test_it_prints_as_the_command_does(capfd: pytest.CaptureFixture[str]) -> None:
    simulation = weir.simulate(load=3, **SMALL)
    flags = [f"--{name}={value}" for name, value in SMALL.items()]
    assert weir._weir.cli(["weir", "simulate", "--load=3", *flags]) == 0
    assert str(simulation) == capfd.readouterr().out
    assert repr(simulation).startswith("<weir.Simulation own with auto: ")


@pytest.mark.parametrize(
    ("flags", "named"),
    [
        ({"scenario": "steps"}, "'steps' is no scenario"),
        ({"limit": "static:0"}, "has no limit"),
        ({"scenario": "ramp", "slots": 3}, "does not go with figures of your own"),
        ({"colour": "blue"}, "--colour"),
        ({"deadline": "0s"}, "no time for an answer"),
    ],
)
def test_what_makes_no_sense_is_told_in_one_line(flags: dict[str, Any], named: str) -> None:
    with pytest.raises(weir.UsageError) as raised:
        weir.simulate(**flags)
    assert named in str(raised.value)
    assert "\n" not in str(raised.value)


def test_the_schema_is_one_that_every_simulation_fits() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    assert_closed(SCHEMA)
    validator = Draft202012Validator(SCHEMA)
    worlds: list[dict[str, Any]] = [{"scenario": "priorities"}, {"scenario": "long-overload", "limit": "static"}]
    for flags in [*worlds, {**SMALL, "limit": "all"}]:
        data = weir.simulate(**flags).to_dict()
        assert [f"{error.json_path}: {error.message}" for error in validator.iter_errors(data)] == []
    assert not validator.is_valid({**data, "schema": 2})


def test_the_python_classes_have_the_schemas_fields_and_types() -> None:
    assert_same("Simulation", weir.Simulation, SCHEMA, SCHEMA)
