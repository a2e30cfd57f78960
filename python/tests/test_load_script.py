"""`weir.load(script=...)`: scripts of k6 and collections of Postman, as the command runs them."""

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import Service

import weir

SHOP = """
import http from 'k6/http';
import { check } from 'k6';
import { Counter } from 'k6/metrics';
const orders = new Counter('orders');
export const options = { vus: 2, iterations: 6, thresholds: { orders: ['count==6'], checks: ['rate>0.9'] } };
export function setup() { return { word: __ENV.WORD }; }
export default function (data) {
  const response = http.get(`${__ENV.HOST || ''}/order?word=${data.word}`);
  check(response, { 'is hello': (r) => r.body === 'hello' });
  orders.add(1);
}
export function teardown() { http.get(`${__ENV.HOST || ''}/end`); }
"""


def _written(folder: Path, text: str, name: str = "shop.js") -> Path:
    file = folder / name
    file.write_text(text)
    return file


def test_a_script_has_the_load_of_its_options(service: Service, tmp_path: Path) -> None:
    file = _written(tmp_path, SHOP)
    run = weir.load(script=file, env={"HOST": service.url, "WORD": "tea"})
    assert run.requests.ok == 6
    assert run.script is not None
    assert [(check.name, check.passed, check.failed) for check in run.script.checks] == [("is hello", 6, 0)]
    assert [(held.objective, held.ok) for held in run.slo] == [("checks: rate>0.9", True), ("orders: count==6", True)]
    paths = [seen.path for seen in service.seen]
    assert paths.count("/order?word=tea") == 6
    assert paths[-1] == "/end"


def test_summaries_of_the_script_are_printed_and_written(
    service: Service, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    summary = """
export function handleSummary(data) {
  http.get(`${__ENV.HOST || ''}/summary`);
  const { orders, checks } = data.metrics;
  return {
    stdout: `${orders.values.count} orders ü\\n`, stderr: 'ended\\n', 'sum.json': JSON.stringify({ orders, checks }),
  };
}
"""
    monkeypatch.chdir(tmp_path)
    file = _written(tmp_path, SHOP + summary)
    for agents in ({}, {"on": "local", "agents": 2}):
        run = weir.load(service.url, script=file, env={"WORD": "tea"}, slo="errors<1%", **agents)  # type: ignore[arg-type]
        assert run.requests.ok == 6
        # On stdout of Python, as the code that reads it is.
        assert capsys.readouterr() == ("6 orders ü\n", "ended\n")
        written = json.loads((tmp_path / "sum.json").read_text())
        assert written["orders"]["thresholds"] == {"count==6": {"ok": True}}
        assert written["checks"]["values"]["passes"] == 6
        assert [seen.path for seen in service.seen][-2:] == ["/end", "/summary"]


def test_a_summary_that_fails_is_a_warning_and_the_result_is_there(service: Service, tmp_path: Path) -> None:
    for body, message in (
        ("throw new Error('no report');", r"^handleSummary\(\): .*shop\.js:14: Error: no report"),
        ("return { stdout: 5 };", r"^handleSummary\(\): 'stdout' is 5 and no text$"),
        ("return { 'missing/sum.json': 'x' };", r"^cannot write 'missing/sum\.json': No such file or directory$"),
    ):
        file = _written(tmp_path, f"{SHOP}export function handleSummary() {{ {body} }}\n")
        with pytest.warns(RuntimeWarning, match=message) as warned:
            run = weir.load(service.url, script=file, env={"WORD": "tea"})
        assert run.requests.ok == 6
        assert [warning.filename for warning in warned] == [__file__]


def test_arguments_replace_the_load_of_the_options(service: Service, tmp_path: Path) -> None:
    file = _written(tmp_path, SHOP)
    env = {"WORD": "tea"}
    run = weir.load(service.url, script=str(file), env=env, connections=1, requests=3, slo="errors<1%")
    assert run.requests.ok == 3
    assert [held.ok for held in run.slo] == [True, False, True]
    assert "orders: count==6" in [held.objective for held in run.slo if not held.ok]
    # Its users stay those of the script.
    assert weir.load(service.url, script=file, env=env, requests=4).connections.max <= 2


def test_no_value_of_env_is_in_the_manifest(service: Service, tmp_path: Path) -> None:
    run = weir.load(service.url, script=_written(tmp_path, SHOP), env={"WORD": "s3cret-value"}, requests=1)
    command = " ".join(run.manifest.command)
    assert "WORD" in command
    assert "s3cret-value" not in command


def test_agents_drive_a_script(service: Service, tmp_path: Path) -> None:
    file = _written(tmp_path, SHOP)
    run = weir.load(service.url, script=file, env={"WORD": "tea"}, on="local", agents=2)
    assert run.requests.ok == 6
    assert run.script is not None
    assert run.script.checks[0].passed == 6


def test_a_collection_of_postman_is_a_script(service: Service, tmp_path: Path) -> None:
    code = "pm.test(`row ${pm.iterationData.get('n')}`, () => pm.expect(pm.response.text()).to.equal('hello'));"
    item = {
        "name": "a",
        "request": "{{host}}/a?n={{n}}&word={{word}}",
        "event": [{"listen": "test", "script": {"exec": code}}],
    }
    file = _written(tmp_path, json.dumps({"info": {"name": "c"}, "item": [item]}), "c.json")
    rows = _written(tmp_path, "n\n1\n2\n", "rows.csv")
    variables = {"host": service.url, "word": "tea"}
    run = weir.load(script=file, variables=variables, data=rows, connections=1, requests=4)
    assert run.script is not None
    assert sorted((check.name, check.passed) for check in run.script.checks) == [("row 1", 2), ("row 2", 2)]
    assert {seen.path for seen in service.seen} == {"/a?n=1&word=tea", "/a?n=2&word=tea"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"check": "status == 200"}, "check cannot be used with a script; write check"),
        ({"json": {}}, "json cannot be used with a script"),
        ({"scenario": weir.Scenario("GET http://h")}, "scenario cannot be used with a script"),
        ({"variables": {"a": 1}}, "variables cannot be used with a script of k6; write env"),
        ({"data": [{"a": 1}]}, "data cannot be used with a script of k6"),
        ({"data_order": "random"}, "data_order cannot be used with a script"),
        ({"processes": 2}, "processes is for classes of users"),
        ({"ramp_up": "1s"}, "ramp_up needs users"),
    ],
)
def test_what_does_not_go_with_a_script_is_one_line(arguments: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(weir.UsageError) as raised:
        weir.load(script=_written(tmp_path, SHOP), **arguments)
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_file_that_is_no_script_is_one_line(service: Service, tmp_path: Path) -> None:
    for name, text, message in (
        ("missing.js", None, "no file"),
        ("a.lua", "x", "neither a script of k6"),
        ("a.json", '{"item": []}', "not a collection of Postman with scripts"),
        ("a.js", "export default 5;", "default"),
        ("b.js", "function (", "b.js:1"),
    ):
        file = tmp_path / name
        if text is not None:
            file.write_text(text)
        with pytest.raises(weir.UsageError) as raised:
            weir.load(service.url, script=file)
        assert message in str(raised.value), name
    with pytest.raises(weir.UsageError, match="env is for a script"):
        weir.load(service.url, env={"A": "b"})
    with pytest.raises(weir.UsageError, match="start_load"):
        weir.start_load(service.url, script=_written(tmp_path, SHOP))
    assert service.seen == []
