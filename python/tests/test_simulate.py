"""`weir.simulate`: overload protection in virtual time."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import programs
import pytest
from jsonschema import Draft202012Validator
from test_schema import assert_closed, assert_same

import weir

SCHEMA: dict[str, Any] = json.loads((Path(__file__).parents[2] / "docs" / "simulation.schema.json").read_text("utf-8"))
SMALL: dict[str, Any] = {"slots": 5, "service_time": "10ms..50ms", "duration": "10s"}


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


def test_flags_make_a_custom_simulation() -> None:
    calm = weir.simulate(load=0.5, limiter="none", **SMALL).run()
    assert (calm.scenario, calm.scored.rejected, calm.scored.overload) == ("custom", 0, False)
    full = weir.simulate(load=5, limiter="none", deadline=timedelta(milliseconds=200), **SMALL).run()
    assert full.scored.goodput is not None
    assert full.scored.goodput < 0.2
    assert full.scored.p99_ms == pytest.approx(200)
    assert full.series[0].t_s == 0.5


def test_a_phase_without_calls_has_none_where_nothing_was_measured() -> None:
    simulation = weir.simulate(load="0/5s,3/5s", warmup="0s", limiter="static:4", slots=5, service_time="20ms")
    idle, busy = simulation.run().phases
    assert (idle.goodput, idle.p50_ms, idle.p99_ms, idle.p99_ratio, idle.rejected, idle.timed_out) == (None,) * 6
    assert busy.p99_ms is not None
    nothing = weir.simulate(rate=0.001, **SMALL)
    assert nothing.run().headline is None
    assert repr(nothing) == "<weir.Simulation custom with auto: ->"
    for some in (simulation, nothing):
        assert list(Draft202012Validator(SCHEMA).iter_errors(some.to_dict())) == []


def test_a_seed_repeats_a_simulation() -> None:
    assert weir.simulate(seed=7, **SMALL) == weir.simulate(seed=7, **SMALL)
    assert weir.simulate(seed=7, **SMALL) != weir.simulate(seed=8, **SMALL)


def test_a_simulation_prints_as_the_command() -> None:
    simulation = weir.simulate(load=3, **SMALL)
    flags = [f"--{name.replace('_', '-')}={value}" for name, value in SMALL.items()]
    assert str(simulation) == programs.weir("simulate", "--load=3", *flags).stdout
    assert repr(simulation).startswith("<weir.Simulation custom with auto: ")


@pytest.mark.parametrize(
    ("flags", "named"),
    [
        ({"scenario": "steps"}, "unknown scenario 'steps'"),
        ({"limiter": "static:0"}, "static:0"),
        ({"scenario": "ramp", "slots": 3}, "scenario cannot be used with flags of a custom simulation"),
        ({"colour": "blue"}, "colour"),
        ({"deadline": "0s"}, "deadline"),
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
    scenarios: list[dict[str, Any]] = [{"scenario": "priorities"}, {"scenario": "long-overload", "limiter": "static"}]
    for flags in [*scenarios, {**SMALL, "limiter": "all"}]:
        data = weir.simulate(**flags).to_dict()
        assert [f"{error.json_path}: {error.message}" for error in validator.iter_errors(data)] == []
    assert not validator.is_valid({**data, "schema": 3})


def test_the_python_classes_have_the_schemas_fields_and_types() -> None:
    assert_same("Simulation", weir.Simulation, SCHEMA, SCHEMA)
