"""The documentation's site: it builds without a warning, and its checks find what they are for."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from naming import ROOT
from programs import finished

SITE = ROOT / "docs" / "site"
TIMEOUT_S = 300


def needs_sphinx() -> None:
    missing = [
        name for name in ("sphinx", "furo", "myst_parser", "sphinx_copybutton") if not importlib.util.find_spec(name)
    ]
    if missing:
        pytest.skip(f"no {', '.join(missing)}; scripts/setup.sh test installs the group docs")


@pytest.fixture(scope="module")
def website() -> Iterator[ModuleType]:
    """Package of the site's parts."""
    sys.path.insert(0, str(SITE))
    yield importlib.import_module("website")
    sys.path.remove(str(SITE))


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the built site."""
    needs_sphinx()
    out = tmp_path_factory.mktemp("site") / "html"
    done = finished(sys.executable, str(SITE / "make_site.py"), "--out", str(out), timeout_s=TIMEOUT_S, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    return out


def test_each_page_of_the_documentation_is_on_the_site_and_beside_it_as_markdown(built: Path) -> None:
    sources = [path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md") if "site" not in path.parts]
    assert len(sources) > 100
    for source in sources:
        name = source.with_name("index") if source.name == "README.md" else source.with_suffix("")
        assert (built / f"{name}.html").is_file(), source
        assert (built / f"{name}.md").is_file(), source


def test_each_command_has_a_page_with_its_flags(built: Path) -> None:
    for command in ("load", "capacity", "serve/work", "send/list", "gate"):
        page = (built / "commands" / f"{command}.html").read_text("utf-8")
        listed = finished(sys.executable, "-m", "weir", *command.split("/"), "--help").stdout
        flags = re.findall(r"^ +(?:-\w, )?(--[a-z][a-z0-9-]+)", listed, re.M)
        assert flags
        anchors = [f'id="cmdoption-weir-{command.replace("/", "-")}-{flag.lstrip("-")}"' for flag in flags]
        # The first spelling of a flag is its anchor, and may be the short one.
        assert [
            flag for flag, anchor in zip(flags, anchors, strict=True) if flag not in page and anchor not in page
        ] == []


def test_python_names_have_entries(built: Path) -> None:
    import weir  # noqa: PLC0415  the other tests need no build

    text = "".join(page.read_text("utf-8") for page in (built / "python-api").glob("*.html"))
    lacking = [name for name in weir.__all__ if name != "__version__" and f'id="weir.{name}"' not in text]
    assert lacking == []


def test_schemas_are_there_to_download(built: Path) -> None:
    for schema in (ROOT / "docs").glob("*.schema.json"):
        assert json.loads((built / schema.name).read_text("utf-8")) == json.loads(schema.read_text("utf-8"))


def test_llms_txt_lists_pages_that_exist(built: Path) -> None:
    text = (built / "llms.txt").read_text("utf-8")
    listed = re.findall(r"^- \[.+\]\((.+\.md)\): \S", text, re.M)
    assert len(listed) > 100
    assert [name for name in listed if not (built / name).is_file()] == []
    assert {"load.md", "commands/load.md", "python-api/load.md", "schemas/run.md"} <= set(listed)


def test_the_checks_find_dead_links_foreign_hosts_and_heavy_pages(website: ModuleType, tmp_path: Path) -> None:
    check = importlib.import_module("website.check")
    (tmp_path / "a.html").write_text(
        '<link rel="stylesheet" href="s.css"><a href="b.html#there">1</a><a href="b.html#not">2</a>'
        '<a href="c.html">3</a>'
        '<a href="https://example.org/">4</a><script src="https://cdn.example/x.js"></script><img src="p.png">'
    )
    (tmp_path / "b.html").write_text(f'<p id="there">{"x" * check.MAX_PAGE_BYTES}</p>')
    (tmp_path / "s.css").write_text(
        "@import url(https://fonts.example/f.css); a { background: url(data:image/png;base64,) }"
    )
    (tmp_path / "p.png").write_bytes(b"")
    found = "\n".join(check.faults(tmp_path))
    assert "b.html#not has an anchor that is not there" in found
    assert "c.html leads nowhere" in found
    assert "loads https://cdn.example/x.js from another host" in found
    assert "s.css: loads https://fonts.example/f.css" in found
    assert "the picture p.png has no text" in found
    assert "b.html: 200,026 bytes" in found
    assert len(found.splitlines()) == 6


def test_help_is_read_with_all_of_its_parts(website: ModuleType) -> None:
    commands = importlib.import_module("website.commands")
    shown = commands.parse(
        "Do it\n\nUsage: weir it [OPTIONS] <A>\n\nArguments:\n  <A>  first,\n       and more\n\n"
        "Options:\n  -n, --number <N>\n"
        "          number [default: 1]\n\n          Possible values:\n          - 1: one\n\n      --quiet  silence\n\n"
        "Examples:\n  weir it a\n  weir it b\n\nReference: docs/it.md\n"
    )
    assert (shown.about, shown.usage, shown.reference) == ("Do it", "weir it [OPTIONS] <A>", "docs/it.md")
    assert shown.examples == ["weir it a", "weir it b"]
    assert [(entry.name, entry.text) for entry in shown.arguments] == [("<A>", "first, and more")]
    assert [(entry.name, entry.text) for entry in shown.groups["Options"]] == [
        ("-n, --number <N>", "number [default: 1] Possible values: - 1: one"),
        ("--quiet", "silence"),
    ]


def test_links_in_code_are_no_links(website: ModuleType) -> None:
    links = importlib.import_module("website.links")
    text = "[a](b.md#c) `[d](e.md)`\n```\n[f](g.md)\n```\n[h\ni](https://example.org) ![j](k.svg)\n"
    assert links.targets(text) == ["b.md#c", "https://example.org", "k.svg"]
    assert links.rewritten(text, str.upper).count("E.MD") == 0
    assert [target for target in links.targets(text) if links.is_local(target)] == ["b.md#c", "k.svg"]


def test_a_page_without_a_place_is_an_error(website: ModuleType) -> None:
    contents = importlib.import_module("website.contents")
    page = importlib.import_module("website.page").Page
    pages = {
        "load": page("load", "docs/load.md", "# Load\n[s](load/streams.md)"),
        "load/streams": page("load/streams", "", ""),
    }
    contents.arrange(pages, {"load"})
    assert pages["load"].children == ["load/streams"]
    pages["load/http2"] = page("load/http2", "docs/load/http2.md", "")
    with pytest.raises(contents.ContentsError, match=r"docs/load.md: has no link to load/http2"):
        contents.arrange(pages, {"load"})
    with pytest.raises(contents.ContentsError, match=r"docs/x.md: has no row in docs/README.md"):
        contents.arrange({"x": page("x", "docs/x.md", "")}, set())
