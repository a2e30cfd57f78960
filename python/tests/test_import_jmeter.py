"""Imported plans of JMeter send what JMeter sends."""

from __future__ import annotations

from pathlib import Path
from xml.sax.saxutils import escape

import pytest
from import_judges import Played, judge, program
from programs import binary

pytestmark = pytest.mark.soak

WEIR = [str(binary())]
PLAY = """import us.abstracta.jmeter.javadsl.core.DslTestPlan;
public class Play { public static void main(String[] a) throws Exception { DslTestPlan.fromJmx(a[0]).run(); } }
"""


def _property(name: str, value: object) -> str:
    kind = "boolProp" if isinstance(value, bool) else "stringProp"
    return f'<{kind} name="{name}">{escape(str(value).lower() if isinstance(value, bool) else str(value))}</{kind}>'


def _arguments(arguments: list[dict[str, object]]) -> str:
    """List of arguments: name, value, and other properties of theirs."""
    made = []
    for argument in arguments:
        own = {"Argument.metadata": "=", **argument}
        properties = "".join(_property(name, value) for name, value in own.items())
        made.append(f'<elementProp name="" elementType="HTTPArgument">{properties}</elementProp>')
    return f'<collectionProp name="Arguments.arguments">{"".join(made)}</collectionProp>'


def _argument(name: str, value: str, encode: bool = True) -> dict[str, object]:
    return {"Argument.name": name, "Argument.value": value, "HTTPArgument.always_encode": encode}


def _sampler(
    path: str,
    method: str = "GET",
    *,
    arguments: list[dict[str, object]] | None = None,
    body: str | None = None,
    files: list[tuple[str, str, str]] | None = None,
    headers: dict[str, str] | None = None,
    below: str = "",
    **more: object,
) -> str:
    listed = arguments if body is None else [{"Argument.value": body, "HTTPArgument.always_encode": False}]
    properties = {
        "HTTPSampler.domain": "127.0.0.1",
        "HTTPSampler.port": "PORT",
        "HTTPSampler.protocol": "http",
        "HTTPSampler.path": path,
        "HTTPSampler.method": method,
        "HTTPSampler.follow_redirects": True,
        "HTTPSampler.use_keepalive": True,
        "HTTPSampler.postBodyRaw": body is not None,
        **{name.replace("__", "."): value for name, value in more.items()},
    }
    parts = [
        f'<elementProp name="HTTPFileArg" elementType="HTTPFileArg">{_property("File.path", path)}'
        f"{_property('File.paramname', name)}{_property('File.mimetype', kind)}</elementProp>"
        for path, name, kind in files or []
    ]
    uploads = (
        '<elementProp name="HTTPsampler.Files" elementType="HTTPFileArgs"><collectionProp name="HTTPFileArgs.files">'
        f"{''.join(parts)}</collectionProp></elementProp>"
        if parts
        else ""
    )
    lines = "".join(
        f'<elementProp name="" elementType="Header">{_property("Header.name", name)}'
        f"{_property('Header.value', value)}</elementProp>"
        for name, value in (headers or {}).items()
    )
    manager = (
        '<HeaderManager guiclass="HeaderPanel" testclass="HeaderManager" testname="h" enabled="true">'
        f'<collectionProp name="HeaderManager.headers">{lines}</collectionProp></HeaderManager><hashTree/>'
    )
    return (
        '<HTTPSamplerProxy guiclass="HttpTestSampleGui" testclass="HTTPSamplerProxy" '
        f'testname="{escape(path)}" enabled="true">'
        f"{''.join(_property(name, value) for name, value in properties.items())}{uploads}"
        f'<elementProp name="HTTPsampler.Arguments" elementType="Arguments">{_arguments(listed or [])}</elementProp>'
        f"</HTTPSamplerProxy><hashTree>{manager if headers else ''}{below}</hashTree>"
    )


def _extractor(kind: str, **properties: object) -> str:
    own = "".join(_property(f"{kind}.{name}", value) for name, value in properties.items())
    return f'<{kind} guiclass="{kind}Gui" testclass="{kind}" testname="e" enabled="true">{own}</{kind}><hashTree/>'


def _plan(variables: dict[str, str], *samplers: str) -> str:
    given = _arguments([{"Argument.name": name, "Argument.value": value} for name, value in variables.items()])
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<jmeterTestPlan version="1.2" properties="5.0" jmeter="5.6.3"><hashTree>
<TestPlan guiclass="TestPlanGui" testclass="TestPlan" testname="plan" enabled="true">
<elementProp name="TestPlan.user_defined_variables" elementType="Arguments">{given}</elementProp></TestPlan><hashTree>
<ThreadGroup guiclass="ThreadGroupGui" testclass="ThreadGroup" testname="users" enabled="true">
<stringProp name="ThreadGroup.num_threads">1</stringProp><stringProp name="ThreadGroup.ramp_time">1</stringProp>
<stringProp name="ThreadGroup.on_sample_error">continue</stringProp>
<elementProp name="ThreadGroup.main_controller" elementType="LoopController" guiclass="LoopControlPanel"
 testclass="LoopController" testname="loop" enabled="true">
<boolProp name="LoopController.continue_forever">false</boolProp><stringProp name="LoopController.loops">1</stringProp>
</elementProp></ThreadGroup><hashTree>{"".join(samplers)}</hashTree></hashTree></hashTree></jmeterTestPlan>"""


JSON = "JSONPostProcessor"
PLANS = {
    "paths with variables": _plan(
        {"base": "/v1", "name": "v2", "none": "", "whole": "http://127.0.0.1:PORT/whole"},
        _sampler("${base}/login"),
        _sampler("/${name}/login"),
        _sampler("${name}/login"),
        _sampler("${none}/login"),
        _sampler("plain"),
        _sampler(""),
        _sampler("${__P(root,/p)}/x"),
        _sampler("${whole}?a=1"),
        _sampler("/a b?c=d e"),
    ),
    "arguments": _plan(
        {"word": "x"},
        _sampler("/q", arguments=[_argument("a", "b c&d~*"), _argument("é", "ü")]),
        _sampler("/q", arguments=[_argument("a", "b%20c", encode=False), _argument("w", "${word}", encode=False)]),
        _sampler("/q?z=1", arguments=[_argument("a", "")]),
        _sampler("/q", arguments=[_argument("a", "") | {"HTTPArgument.use_equals": False, "Argument.metadata": ""}]),
        _sampler("/f", "POST", arguments=[_argument("a", "b c+d"), _argument("e", "f~")]),
        _sampler("/f", "POST", arguments=[_argument("a", "b+c", encode=False)]),
        _sampler("/f", "PUT", arguments=[_argument("a", "b c")]),
        _sampler("/f", "DELETE", arguments=[_argument("a", "b c")]),
    ),
    "bodies": _plan(
        {"word": "x"},
        _sampler("/b", "POST", body='{"a": "${word}"}', headers={"Content-Type": "application/json"}),
        _sampler("/b", "POST", body="plain text", headers={"Content-Type": "text/plain", "X-A": "${word}"}),
        _sampler("/b", "PATCH", body="a=b c", headers={"Content-Type": "application/x-www-form-urlencoded"}),
    ),
    "numbers of matches": _plan(
        {},
        _sampler(
            "/json",
            below=_extractor("RegexExtractor", refname="second", regex='"id": (\\d+)', template="$1$", match_number="2")
            + _extractor("RegexExtractor", refname="first", regex='"id": (\\d+)', template="$1$", match_number="1")
            + _extractor("BoundaryExtractor", refname="bound", lboundary='"name": "', rboundary='"', match_number="3")
            + _extractor(JSON, referenceNames="third", jsonPathExprs="$.items[*].id", match_numbers="3")
            + _extractor(
                JSON,
                referenceNames="a;b",
                jsonPathExprs="$.items[*].name;$.token",
                match_numbers="2;1",
                defaultValues="x;y",
            ),
        ),
        _sampler("/echo/${second}/${first}/${bound}/${third}/${a}/${b}"),
    ),
}


@pytest.mark.parametrize("name", PLANS)
def test_a_plan_sends_what_jmeter_sends(name: str, tmp_path: Path) -> None:
    libraries, java = judge("jmeter", "lib"), program("java")
    (tmp_path / "Play.java").write_text(PLAY)
    plan = tmp_path / "plan.jmx"
    plan.write_text(PLANS[name])
    played = Played(plan, WEIR, [java, "-cp", f"{libraries}/*", "Play.java", "plan.jmx"])
    assert played.of_tool, played.output
    assert not played.differences(), played.differences()
