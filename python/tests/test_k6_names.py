"""Names of k6 as its types have them, against those of weir's modules; and the scripts of `examples/k6`."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from k6_names import PAGE, TYPES, TYPESCRIPT, are_there, exported, page, typed
from naming import ROOT
from programs import binary, finished, started

pytestmark = pytest.mark.wide

EXAMPLES = ROOT / "examples" / "k6"
SCRIPTS = sorted(path.name for path in EXAMPLES.glob("[0-9]*.[jt]s"))


def need_types() -> None:
    """Skip the test without the types of k6 and their compiler."""
    if not are_there():
        pytest.skip("no @types/k6 and typescript; scripts/setup.sh test-all installs them if npm is there")


def test_each_name_of_the_types_is_on_the_page() -> None:
    need_types()
    types = typed()
    assert len(types) >= 15, types
    own = exported(list(types))
    assert not [name for name in own if name.endswith(" default")], own
    text = page(types, own)
    assert "**missing**" not in text
    assert text == PAGE.read_text("utf-8"), "python python/tests/k6_names.py > docs/scripts/k6-names.md"


def test_the_examples_are_typed_as_the_types_say(tmp_path: Path) -> None:
    need_types()
    settings = json.loads((EXAMPLES / "tsconfig.json").read_text("utf-8"))
    settings["compilerOptions"]["typeRoots"] = [str(TYPES.parent)]
    settings["compilerOptions"]["paths"] = {"k6": [str(TYPES)], "k6/*": [f"{TYPES}/*"]}
    settings["include"] = [str(EXAMPLES / name) for name in settings["include"]]
    config = tmp_path / "tsconfig.json"
    config.write_text(json.dumps(settings))
    done = finished("node", str(TYPESCRIPT / "lib" / "tsc.js"), "-p", str(config), timeout_s=300)
    assert done.returncode == 0, done.stdout


@pytest.fixture(scope="module")
def shop() -> Iterator[str]:
    """URL of a running `weir serve shop`."""
    with started(str(binary()), "serve", "shop") as service:
        assert service.stdout
        yield json.loads(service.stdout.readline())["listening"]


# Elements of HTML that have another class than their name says.
TAGS = {
    "AnchorElement": "a",
    "DataListElement": "datalist",
    "FieldSetElement": "fieldset",
    "IFrameElement": "iframe",
    "ImageElement": "img",
    "LiElement": "li",
    "OListElement": "ol",
    "OptGroupElement": "optgroup",
    "ParamElement": "param",
    "PreElement": "pre",
    "QuoteElement": "q",
    "TableBodyElement": "tbody",
    "TableColElement": "col",
    "TableDataCellElement": "td",
    "TableFootElement": "tfoot",
    "TableHeadElement": "thead",
    "TableHeaderCellElement": "th",
    "TableRowElement": "tr",
    "TextAreaElement": "textarea",
    "UListElement": "ul",
}
# Classes that are the base of others.
BASES = {
    "Element",
    "FormFieldElement",
    "HrefElement",
    "MediaElement",
    "ModElement",
    "TableCellElement",
    "TableSectionElement",
}

MEMBERS = """
import http from 'k6/http';
import { parseHTML } from 'k6/html';
import { createHash } from 'k6/crypto';
import { Counter, Gauge, Rate, Trend } from 'k6/metrics';
import { Parser } from 'k6/experimental/csv';
import { File, open } from 'k6/experimental/fs';
const file = await open('./members.js');
const metrics = { Counter: new Counter('c'), Gauge: new Gauge('g'), Rate: new Rate('r'), Trend: new Trend('t') };
export default () => {
  const page = parseHTML('<p a="b">x</p>');
  const made = {
    Selection: page, Attribute: page.find('p').get(0).getAttributeNode('a'), Hasher: createHash('md5'), File: file,
    Response: http.get(`${__ENV.HOST}/`), CookieJar: http.cookieJar(), FileData: http.file('a'),
    Parser: Parser.prototype, ...metrics,
  };
  for (const [name, tag] of Object.entries(TAGS)) {
    made[name] = parseHTML(`<${tag}>`).find(tag).get(0);
  }
  const missing = {};
  for (const [name, members] of Object.entries(WANTED)) {
    const absent = made[name] === undefined ? ['all'] : members.filter((member) => !(member in made[name]));
    if (absent.length > 0) missing[name] = absent;
  }
  console.log(`MISSING ${JSON.stringify(missing)}`);
};
"""


def test_objects_have_the_members_of_the_types(tmp_path: Path, shop: str) -> None:
    need_types()
    types = typed()
    elements = {name for name in types["k6/html"]["members"] if name.endswith("Element")} - BASES
    tags = {name: TAGS.get(name, name.removesuffix("Element").lower()) for name in elements}
    wanted: dict[str, list[str]] = {name: types["k6/html"]["members"][name] for name in elements}
    for module, names in {
        "k6/html": ["Selection", "Attribute"],
        "k6/crypto": ["Hasher"],
        "k6/http": ["Response", "CookieJar", "FileData"],
        "k6/metrics": ["Counter", "Gauge", "Rate", "Trend"],
        "k6/experimental/fs": ["File"],
        "k6/experimental/csv": ["Parser"],
    }.items():
        wanted |= {name: types[module]["members"][name] for name in names}
    assert sum(len(members) for members in wanted.values()) > 500
    script = tmp_path / "members.js"
    script.write_text(f"const TAGS = {json.dumps(tags)};\nconst WANTED = {json.dumps(wanted)};\n{MEMBERS}")
    done = finished(str(binary()), "load", "-q", "-s", str(script), "-n", "1", "-c", "1", "-e", f"HOST={shop}")
    [line] = [line for line in done.stderr.splitlines() if line.startswith("MISSING ")] or [done.stderr]
    assert line == "MISSING {}"


def test_there_are_twenty_examples() -> None:
    assert len(SCRIPTS) == 20


@pytest.mark.parametrize("name", SCRIPTS)
def test_an_example_runs_without_a_failure(name: str, shop: str) -> None:
    done = finished(str(binary()), "load", "-q", "-s", str(EXAMPLES / name), "-e", f"HOST={shop}", timeout_s=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "error:" not in done.stderr, done.stderr
    assert " 0 failed" in done.stdout, done.stdout
