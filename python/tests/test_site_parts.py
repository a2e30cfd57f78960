"""Parts of the documentation's site that need no Sphinx: links, the table of contents, help texts, checks."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from naming import ROOT

pytestmark = pytest.mark.wide

SITE = ROOT / "docs" / "site"
MAX_LINES = 250


@pytest.fixture(scope="module")
def website() -> Iterator[ModuleType]:
    """Package of the site's parts."""
    sys.path.insert(0, str(SITE))
    yield importlib.import_module("website")
    sys.path.remove(str(SITE))


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
    found = "\n".join(check.faults(tmp_path, check.read(tmp_path)))
    assert "b.html#not has an anchor that is not there" in found
    assert "c.html leads nowhere" in found
    assert "loads https://cdn.example/x.js from another host" in found
    assert "s.css: loads https://fonts.example/f.css" in found
    assert "the picture p.png has no text" in found
    assert "b.html: 220,018 bytes" in found
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


def test_tables_whose_first_cells_link_nothing_are_no_sections(website: ModuleType) -> None:
    contents = importlib.import_module("website.contents")
    index = "# D\n| **Door** | [a](a.md) |\n\n## Tools\n\n| k6 | [a](a.md) |\n\n## R\n\n| [b](b.md) | k6 |\n"
    assert contents.sections(index, {"a.md": "a", "b.md": "b"}) == [contents.Section("R", ("b",))]


def test_the_index_begins_with_doors_of_few_links(website: ModuleType) -> None:
    links = importlib.import_module("website.links")
    door = (ROOT / "docs" / "README.md").read_text("utf-8").partition("\n## ")[0]
    rows = [row for row in door.splitlines() if row.startswith("| **")]
    names = [row.split("**")[1] for row in rows]
    assert names == ["Measure", "Measure", "Judge", "Protect", "Deliver"]
    assert all(1 <= len(links.targets(row)) <= 4 for row in rows)


COMMANDS = (
    "load", "llm", "replay", "capacity", "compare", "history", "study", "import", "record", "serve", "gate", "send",
    "simulate", "doctor", "ui",
)  # fmt: skip
"""Commands whose pages begin alike."""


@pytest.mark.parametrize("command", COMMANDS)
def test_a_page_of_a_command_begins_with_its_purpose_a_command_its_output_and_where_next(command: str) -> None:
    page = (ROOT / "docs" / f"{command}.md").read_text("utf-8")
    title, purpose, rest = page.split("\n\n", 2)
    assert title.startswith("# ")
    assert len(purpose.splitlines()) <= 3, purpose
    assert rest.startswith("```console\n$ "), "the first thing after the purpose is a command"
    block, _, after = rest.partition("\n```\n")
    assert f"$ weir {command}" in block
    assert [line for line in block.splitlines()[1:] if not line.startswith(("$ ", "> "))], "the command has its output"
    begun = after[: after.index("\nNext: ")]
    assert "\n## " not in begun, "where to go next stands before the first heading"
    assert "|---" not in begun


def test_pages_are_short_enough_to_be_read() -> None:
    lengths = {path.relative_to(ROOT): len(path.read_text("utf-8").splitlines()) for path in ROOT.glob("docs/**/*.md")}
    assert {str(page): lines for page, lines in lengths.items() if lines > MAX_LINES} == {}


def test_pages_are_mended_for_screen_readers(website: ModuleType) -> None:
    access = importlib.import_module("website.access")
    html = (
        '<aside class="sidebar-drawer">1</aside><aside class="toc-drawer no-toc">2</aside>'
        '<tr><th class="head"><p></p></th><th class="head text-right"><p>ms</p></th></tr>'
        "<span>(</span>\n\n<dl>\n<dd><em>url</em>,</dd>\n<dd><em>rate</em></dd>\n</dl>\n\n<span>)</span>"
        "<dl>\n<dt>term</dt>\n<dd>text</dd>\n</dl>"
    )
    assert access.mended(html) == (
        '<aside aria-label="Site navigation" class="sidebar-drawer">1</aside>'
        '<aside aria-label="On this page" class="toc-drawer no-toc">2</aside>'
        '<tr><td></td><th class="head text-right"><p>ms</p></th></tr>'
        '<span>(</span>\n\n<div class="sig-parameters">\n<div><em>url</em>,</div>\n<div><em>rate</em></div>\n</div>'
        "\n\n<span>)</span><dl>\n<dt>term</dt>\n<dd>text</dd>\n</dl>"
    )
