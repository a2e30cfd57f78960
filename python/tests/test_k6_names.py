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


def test_there_are_twenty_examples() -> None:
    assert len(SCRIPTS) == 20


@pytest.mark.parametrize("name", SCRIPTS)
def test_an_example_runs_without_a_failure(name: str, shop: str) -> None:
    done = finished(str(binary()), "load", "-q", "-s", str(EXAMPLES / name), "-e", f"HOST={shop}", timeout_s=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "error:" not in done.stderr, done.stderr
    assert " 0 failed" in done.stdout, done.stdout
