"""`docs/schema/run.schema.json`, the JSON of a run and the classes of Python have the same fields."""

import dataclasses
import json
import re
import sys
import tempfile
import textwrap
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints

import programs
import pytest
from conftest import running_service
from http2_service import resetting_service
from jsonschema import Draft202012Validator

import weir

SCHEMA: dict[str, Any] = json.loads(
    (Path(__file__).parents[2] / "docs" / "schema" / "run.schema.json").read_text("utf-8")
)
VALIDATOR = Draft202012Validator(SCHEMA)
OPTIONAL_FIELDS = {
    "accepted",
    "http2",
    "streams",
    "llm",
    "websocket",
    "script",
    "replay",
    "trace",
    "changes",
    "iterations",
    "scenarios",
    "steps",
    "ended_by",
    "aborted",
    "lost_log_lines",
}
"""Fields that are absent without HTTP/2, WebSocket, streams or scenarios, and of runs that end in time, that replay no
log or trace, that have lost no line of one, or that nothing has changed."""
OPTIONAL_PARTS = {"interval": {"streams", "websocket"}, "stream_point": {"llm"}, "trace": {"clients"}}
"""Fields of other objects that are absent without streams, without WebSocket, without a language model or of a recorded
trace."""


@pytest.fixture(scope="module")
def runs() -> Iterator[dict[str, weir.Run]]:
    with running_service() as service:
        yield runs_of(service.url)


def runs_of(url: str) -> dict[str, weir.Run]:
    """Runs of all kinds."""
    slow = url + "/slow?ms=200"
    return {
        "closed": weir.load(url, connections=2, requests=50, slo=["p99<30s", "rate>1e9"]),
        "open": weir.load(url, rate=100, duration="500ms", warmup="100ms", arrivals="poisson"),
        "failing": weir.load(url + "/status?code=500", connections=1, requests=5),
        "closing": weir.load(url + "/close", connections=1, requests=5),
        "dropping": weir.load(slow, connections=1, rate=50, duration="1s", timeout="100ms"),
        "posting": weir.load(url, users=2, loops=3, keepalive=False, json={"a": 1}),
        "agents": weir.load(url, connections=4, requests=40, on="local", agents=2),
        "http2": http2_run(),
        "streams": stream_run(),
        "llm": llm_run(),
        "websocket": websocket_run(),
        "replay": replay_run(url),
        "trace": trace_run(),
        "clients": clients_run(),
        "changed": changed_run(url),
        "scenario": scenario_run(url),
        "rows": weir.load(url + "/{{id}}", data=[{"id": 1}, {"id": 2}], data_order="unique", connections=1),
        "stopped": script_run(url, "function response() wrk.thread:stop() end"),
        "k6": k6_run(url),
        "script_error": script_run(url, "function response() error('no') end"),
        "accepted": saved_run(url + "/status?code=404", "--success", "status < 500", "-n", "20"),
        "aborted": saved_run(url + "/status?code=500", "--abort", "errors>20%", "-d", "30s"),
    }


def http2_run() -> weir.Run:
    """Run of a service that speaks HTTP/2, and resets streams."""
    with resetting_service() as url:
        return weir.load(url, h2c=True, connections=1, requests=20)


def stream_run() -> weir.Run:
    """Run of a service whose responses are streams, some of which break off."""
    with weir.serve("stream", events=3, gap="1ms", first_delay="1ms", cut="20%") as service:
        return weir.load(service.url + "/sse", stream=True, connections=2, requests=20)


def websocket_run() -> weir.Run:
    """Run of messages over WebSocket, some of which close their connection."""
    with weir.serve("ws", delay="20ms", reject="20%", close="20%", seed=1) as service:
        url = service.url
        return weir.load(url, body="hello", connections=2, requests=40, ping_interval="10ms")


def scenario_run(url: str) -> weir.Run:
    """Run of a scenario with a step that fails."""
    shop = """
        # @name items
        GET {{host}}/
        HTTP 200
        [Asserts]
        duration < 30000
        # @name order
        GET {{host}}/
        HTTP 201
    """.replace("{{host}}", url)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "shop.hurl"
        file.write_text(textwrap.dedent(shop), "utf-8")
        return saved_run("-s", str(file), "--users", "2", "-n", "4")


def script_run(url: str, text: str) -> weir.Run:
    """Run of a Lua script."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "users.lua"
        file.write_text(text, "utf-8")
        return saved_run("-s", str(file), url, "-c", "1", "-d", "30s")


def k6_run(url: str) -> weir.Run:
    """Run of a script of k6 that checks, throws, computes without end, and calls the run a failure."""
    text = """
        import http from 'k6/http';
        import { check } from 'k6';
        import exec from 'k6/execution';
        export default () => {
          check(http.get(__ENV.URL), { ok: (r) => r.status === 200 });
          exec.test.fail('no');
          if (__ITER === 0) throw new Error('first');
          for (;;) Math.sqrt(2);
        };
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "users.js"
        file.write_text(textwrap.dedent(text), "utf-8")
        return saved_run("-s", str(file), "-e", f"URL={url}", "-c", "1", "-d", "500ms")


def llm_run() -> weir.Run:
    """Run of requests to a language model, with an objective of each."""
    with weir.serve("llm", prefill="1ms", decode="1ms") as model:
        flags = ["--model", "weir-llm", "-n", "4", "-c", "2", "--input-tokens", "5", "--output-tokens", "3"]
        return saved_run(model.url, *flags, "--goodput", "e2e:30s", command="llm")


def replay_run(url: str) -> weir.Run:
    """Run of a log, a line of which is broken, and whose last status is another one than the service's."""
    line = '::1 - - [26/Nov/2025:12:00:00 +0000] "GET / HTTP/1.1" {} 5 "-" "-"\n'
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "access.log"
        file.write_text(line.format(200) + "broken\n" + line.format(500), "utf-8")
        return saved_run(str(file), "--target", url, "--speed", "10", command="replay")


def trace_run() -> weir.Run:
    """Run of a trace, a line of which is broken."""
    with weir.serve("llm", prefill="1ms", decode="1ms") as model, tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "trace.jsonl"
        line = '{"timestamp": 5, "input_length": 600, "output_length": 3, "hash_ids": [1, 2]}\n'
        file.write_text(line + "broken\n" + line, "utf-8")
        return saved_run(model.url, "--model", "weir-llm", "--trace", str(file), command="llm")


def clients_run() -> weir.Run:
    """Run of clients that are composed."""
    with weir.serve("llm", prefill="1ms", decode="1ms") as model, tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "clients.toml"
        text = '[[client]]\nname = "chat"\nrate = 20\ninput_tokens = 20\noutput_tokens = 5\n'
        file.write_text(text, "utf-8")
        return saved_run(model.url, "--model", "weir-llm", "--trace", str(file), "-d", "2s", command="llm")


def changed_run(url: str) -> weir.Run:
    """Run whose rate is changed, and that is stopped then."""
    with tempfile.TemporaryDirectory() as folder:
        saved = Path(folder) / "run.json"
        load = ["load", url, "--rate", "50", "-d", "60s", "--web=127.0.0.1:0", "-q", "-o", str(saved)]
        with programs.started(sys.executable, "-m", "weir", *load) as process:
            assert process.stderr
            found = re.search(r"(http://\S+)/#([\w-]+)", process.stderr.readline())
            assert found
            page, token = found.groups()
            headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json", "Origin": page}
            for change in ({"rate": 100}, "stop"):
                request = urllib.request.Request(
                    f"{page}/api/change", json.dumps(change).encode(), headers, method="POST"
                )
                until = time.monotonic() + programs.TIMEOUT_S
                while not is_accepted(request):
                    assert time.monotonic() < until, "the load does not begin"
            process.wait(programs.TIMEOUT_S)
        return weir.Run.from_json(saved.read_text("utf-8"))


def is_accepted(request: urllib.request.Request) -> bool:
    """Whether a change is accepted; a load that has not begun has none."""
    try:
        with urllib.request.urlopen(request, timeout=programs.TIMEOUT_S):
            return True
    except urllib.error.HTTPError as error:
        if error.code == 409:
            return False
        raise


def saved_run(*args: str, command: str = "load") -> weir.Run:
    """Run of a command that the Python function has no arguments for."""
    with tempfile.TemporaryDirectory() as folder:
        saved = Path(folder) / "run.json"
        programs.weir(command, *args, "-q", "-o", str(saved))
        return weir.Run.from_json(saved.read_text("utf-8"))


def test_the_schema_is_valid() -> None:
    Draft202012Validator.check_schema(SCHEMA)


def test_every_run_matches_the_schema(runs: dict[str, weir.Run]) -> None:
    for name, run in runs.items():
        errors = [f"{name}: {error.json_path}: {error.message}" for error in VALIDATOR.iter_errors(run.to_dict())]
        assert errors == []
    assert "dropped" in runs["dropping"].failures
    assert runs["scenario"].failures == {"check": 4}
    assert [step.name for step in runs["scenario"].steps] == ["items", "order"]
    assert runs["scenario"].steps[1].samples[0].reason
    assert runs["closed"].iterations is None
    assert runs["closed"].steps == ()


def test_every_field_of_the_schema_occurs(runs: dict[str, weir.Run]) -> None:
    # All fields are required, so a missing one fails above; here fields must also have a value in some run.
    empty = {"$.target.tls", "$.agents[].lost", "$.lost_log_lines"}
    filled: set[str] = set()
    for run in runs.values():
        filled |= {path for path, value in _leaves("$", SCHEMA, run.to_dict()) if value is not None}
    assert filled >= set(_paths("$", SCHEMA)) - empty


def test_every_object_is_closed_and_every_field_is_described() -> None:
    assert_closed(SCHEMA)


def assert_closed(root: dict[str, Any]) -> None:
    for part, schema in [("", root), *root["$defs"].items()]:
        assert schema["additionalProperties"] is False
        optional = OPTIONAL_FIELDS if schema is SCHEMA else OPTIONAL_PARTS.get(part, set())
        assert sorted(schema["required"]) == sorted(set(schema["properties"]) - optional)
        assert schema["description"]
        for name, field in schema["properties"].items():
            assert field["description"].endswith("."), name


def test_an_invalid_run_does_not_match(runs: dict[str, weir.Run]) -> None:
    right = runs["closed"].to_dict()
    wrong = [
        right | {"colour": "blue"},
        right | {"schema": 4},
        right | {"status": {"20": 1}},
        right | {"failures": {"bad luck": 1}},
        right | {"response_ms": right["response_ms"] | {"p98": 1.0}},
        {name: value for name, value in right.items() if name != "trust"},
    ]
    assert [VALIDATOR.is_valid(data) for data in wrong] == [False] * len(wrong)


def test_the_python_classes_have_the_schemas_fields_and_types() -> None:
    assert_same("Run", weir.Run, SCHEMA, SCHEMA)


def _resolved(schema: dict[str, Any], root: dict[str, Any] = SCHEMA) -> dict[str, Any]:
    reference: str | None = schema.get("$ref")
    return root["$defs"][reference.rpartition("/")[2]] if reference else schema


def _paths(path: str, schema: dict[str, Any]) -> Iterator[str]:
    schema = _resolved(schema)
    if "properties" in schema:
        for name, field in schema["properties"].items():
            yield from _paths(f"{path}.{name}", field)
    elif "items" in schema:
        yield from _paths(f"{path}[]", schema["items"])
    else:
        yield path


def _leaves(path: str, schema: dict[str, Any], data: Any) -> Iterator[tuple[str, Any]]:
    schema = _resolved(schema)
    if "properties" in schema:
        for name, field in schema["properties"].items():
            if name in data or name in schema["required"]:
                yield from _leaves(f"{path}.{name}", field, data[name])
    elif "items" in schema:
        for item in data:
            yield from _leaves(f"{path}[]", schema["items"], item)
    else:
        yield path, data


def assert_same(path: str, kind: Any, schema: dict[str, Any], root: dict[str, Any]) -> None:
    """Compare fields and types recursively; `path` is the position in the tree."""
    schema = _resolved(schema, root)
    if dataclasses.is_dataclass(kind):
        hints = get_type_hints(kind)
        fields = {f.metadata.get("json", f.name): f.name for f in dataclasses.fields(kind) if f.name[0] != "_"}
        assert list(fields) == list(schema["properties"]), path
        for in_json, name in fields.items():
            assert_same(f"{path}.{name}", hints[name], schema["properties"][in_json], root)
    elif get_origin(kind) is tuple:
        assert schema["type"] == "array", path
        assert_same(f"{path}[]", get_args(kind)[0], schema["items"], root)
    elif get_origin(kind) is Mapping:
        assert schema["type"] == "object", path
    elif get_origin(kind) is Literal:
        assert schema["enum"] == list(get_args(kind)), path
    elif isinstance(kind, UnionType) and dataclasses.is_dataclass(get_args(kind)[0]):
        assert_same(path, get_args(kind)[0], schema, root)
    elif isinstance(kind, UnionType):
        assert schema["type"] == [_json_type(get_args(kind)[0]), "null"], path
    elif path in ("Run.schema", "Simulation.schema", "Comparison.schema"):
        assert schema["const"] == (3 if path == "Run.schema" else 2)
    else:
        assert schema["type"] == _json_type(kind), path


def _json_type(kind: type) -> str:
    return {str: "string", int: "integer", float: "number", bool: "boolean"}[kind]
