"""Table of contents: sections of docs/README.md, and pages below others by their folders."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from website import links
from website.page import Page


class ContentsError(Exception):
    """Page without a place in the table of contents, or with two."""


@dataclass(frozen=True)
class Section:
    """Section of the table of contents.

    Attributes:
        title: Heading in docs/README.md.
        names: Names of its pages, in order.
    """

    title: str
    names: tuple[str, ...]


def sections(index: str, name_of: Mapping[str, str]) -> list[Section]:
    """Sections of docs/README.md: headings of the second level, with the pages that the first cells below them link.

    Args:
        index: Text of the file.
        name_of: Names of pages by the targets of links on it.
    """
    found = []
    for part in re.split(r"^## ", index, flags=re.M)[1:]:
        title, _, rows = part.partition("\n")
        cells = [re.split(r"(?<!\\)\|", row)[1] for row in rows.splitlines() if row.startswith("|")]
        listed = [target for cell in cells for target in links.targets(cell)]
        unknown = [target for target in listed if target not in name_of]
        if unknown:
            raise ContentsError(f"docs/README.md: {', '.join(unknown)} under '{title}': no such page")
        # Tables of other ways to pages, such as by tool, link none in their first cells.
        if listed:
            found.append(Section(title, tuple(name_of[target] for target in listed)))
    return found


def arrange(pages: Mapping[str, Page], listed: set[str]) -> None:
    """Give each page that docs/README.md does not list a place below the page of its folder.

    The page of the folder `X` is `X` or `X/index`; its links are the order.
    """
    below: dict[str, list[str]] = {}
    for name, page in pages.items():
        if page.is_listed and name not in listed and name != "index":
            below.setdefault(_parent(name, pages), []).append(name)
    for parent, names in below.items():
        text, place = pages[parent].text, f"{parent}.md"
        order = [links.resolved(place, target.partition("#")[0]).removesuffix(".md") for target in links.targets(text)]
        unlinked = sorted(name for name in names if name not in order)
        if unlinked:
            raise ContentsError(f"{pages[parent].source or parent}: has no link to {', '.join(unlinked)}")
        pages[parent].children = sorted(names, key=order.index)


def _parent(name: str, pages: Mapping[str, Page]) -> str:
    folder = name.removesuffix("/index").rpartition("/")[0]
    for parent in (f"{folder}/index", folder):
        if parent in pages and parent != name:
            return parent
    raise ContentsError(f"{pages[name].source or name}: has no row in docs/README.md")


def toctree(names: list[str] | tuple[str, ...], caption: str = "") -> str:
    """Hidden directive that puts pages below the one that it stands on."""
    option = f":caption: {caption}\n" if caption else ""
    entries = "".join(f"/{name}\n" for name in names)
    return f"\n```{{toctree}}\n:hidden:\n{option}\n{entries}```\n"
