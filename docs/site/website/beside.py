"""What is beside the built pages: each as Markdown, and llms.txt."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from website.contents import Section
from website.page import Page


def write(site: Path, pages: Mapping[str, Page], sections: Iterable[Section], about: str) -> None:
    """Write the Markdown of each page as `NAME.md`, and the list of all as `llms.txt`."""
    for page in pages.values():
        file = site / f"{page.name}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(page.markdown, "utf-8")
    (site / "llms.txt").write_text("".join(_lines(pages, sections, about)), "utf-8")


def _lines(pages: Mapping[str, Page], sections: Iterable[Section], about: str) -> Iterator[str]:
    yield f"# weir\n\n> {about}\n"
    for section in sections:
        yield f"\n## {section.title}\n\n"
        for name in section.names:
            yield from _rows(pages, pages[name])


def _rows(pages: Mapping[str, Page], page: Page) -> Iterator[str]:
    yield f"- [{page.title}]({page.name}.md): {page.summary}\n"
    for child in page.children:
        yield from _rows(pages, pages[child])
