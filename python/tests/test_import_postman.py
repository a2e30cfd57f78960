"""Imported collections of Postman send what newman sends."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from import_judges import Played, judge
from programs import binary

pytestmark = pytest.mark.soak

WEIR = [str(binary())]
SCHEMA = "https://schema.getpostman.com/json/collection/v2.1.0/collection.json"
JSON = {"raw": {"language": "json"}}


def _request(
    method: str, path: str, body: object = None, headers: dict[str, str] | None = None, **more: object
) -> object:
    listed = [{"key": name, "value": value} for name, value in (headers or {}).items()]
    request = {"method": method, "url": f"http://127.0.0.1:PORT{path}", "header": listed}
    return {"name": f"{method} {path}", "request": request | ({"body": body} if body else {}), **more}


def _raw(text: str, **more: object) -> object:
    return {"mode": "raw", "raw": text, **more}


def _form(mode: str, *fields: dict[str, object]) -> object:
    return {"mode": mode, mode: list(fields)}


REQUESTS = [
    _request("POST", "/raw", _raw("plain")),
    _request("POST", "/raw", _raw('{"a": "{{word}}"}', options=JSON)),
    _request("POST", "/raw", _raw('{\n// one\n"a": 1 /* two */\n}', options=JSON)),
    _request("POST", "/raw", _raw('{"a": "//x"}'), {"Content-Type": "application/json"}),
    _request("POST", "/raw", _raw("<a/>", options={"raw": {"language": "xml"}})),
    _request("POST", "/raw", _raw("x"), {"Content-Type": "text/csv"}),
    _request("GET", "/pruned", _raw("never sent")),
    _request("GET", "/kept", _raw("sent"), protocolProfileBehavior={"disableBodyPruning": True}),
    _request("DELETE", "/raw", _raw("sent")),
    _request("POST", "/form", _form("urlencoded", {"key": "a", "value": "b c&d"}, {"key": "é", "value": "ü"})),
    _request(
        "POST", "/form", _form("urlencoded", {"key": "a", "value": "1"}, {"key": "b", "value": "2", "disabled": True})
    ),
    _request("POST", "/parts", _form("formdata", {"key": "a", "value": "b;c", "type": "text"})),
    _request(
        "POST",
        "/parts",
        _form("formdata", {"key": "m", "value": "{}", "type": "text", "contentType": "application/json"}),
    ),
    _request("GET", "/query?a=b c&d=%20&e={{word}}"),
    _request("GET", "/query?x[]=1&y=a|b"),
    _request("GET", "/headers", None, {"X-Word": "{{word}}", "X-Empty": ""}),
    _request("GET", "/auth", None, {"Authorization": "Bearer {{word}}"}),
    _request("PATCH", "/graphql", {"mode": "graphql", "graphql": {"query": "{ a }", "variables": '{"b": 1}'}}),
]


def test_a_collection_sends_what_newman_sends(tmp_path: Path) -> None:
    newman = judge("newman", "node_modules", ".bin", "newman")
    collection = {
        "info": {"name": "c", "schema": SCHEMA},
        "item": REQUESTS,
        "variable": [{"key": "word", "value": "x1"}],
    }
    file = tmp_path / "c.json"
    file.write_text(json.dumps(collection))
    played = Played(file, WEIR, [str(newman), "run", "c.json", "--insecure"])
    assert len(played.of_tool) == len(REQUESTS), played.output
    assert not played.differences(), played.differences()
