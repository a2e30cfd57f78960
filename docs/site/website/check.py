"""Checks of the built pages: links and anchors, foreign hosts, weight."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

MAX_PAGE_BYTES = 220_000
"""Largest page with its styles and scripts, without pictures, as stored (not compressed)."""

HEAVY = {
    "changelog.html": "all changes on one page",
    "genindex.html": "all names on one page",
    "search.html": "the index of all words",
}
"""Pages that may be larger, with the reason."""

_LOADED = {"script": "src", "img": "src", "source": "src", "iframe": "src", "object": "data", "embed": "src"}
_LOADED_LINKS = {"stylesheet", "icon", "preload", "modulepreload", "preconnect", "dns-prefetch", "manifest"}
_STYLE_URL = re.compile(r"(?:(?:@import\s+)?url\(\s*|@import\s+)['\"]?([^'\")\s;]+)")


@dataclass
class Html(HTMLParser):
    """A built page.

    Attributes:
        path: Path in the site.
        ids: Anchors.
        links: Targets of links.
        loaded: Addresses of what a browser loads with the page.
        styled: Text of styles on the page.
        unlabelled: Pictures without a text in their place.
    """

    path: str
    ids: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    loaded: list[str] = field(default_factory=list)
    styled: str = ""
    unlabelled: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Prepare the parser."""
        super().__init__()
        self._is_style = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect what an element refers to."""
        values = {name: value or "" for name, value in attrs}
        self.ids |= {
            values[name] for name in ("id", "name") if values.get(name) and not (name == "name" and tag == "meta")
        }
        self._is_style = tag == "style"
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        if tag == "link":
            is_loaded = bool(_LOADED_LINKS & set(values.get("rel", "").split()))
            (self.loaded if is_loaded else self.links).append(values.get("href", ""))
        if values.get(_LOADED.get(tag, "")):
            self.loaded.append(values[_LOADED[tag]])
        if tag == "img" and not values.get("alt"):
            self.unlabelled.append(values.get("src", ""))
        self.styled += values.get("style", "")

    def handle_data(self, data: str) -> None:
        """Collect styles."""
        if self._is_style:
            self.styled += data


def read(site: Path) -> dict[str, Html]:
    """Read all pages of a built site, by path."""
    pages = {}
    for file in sorted(site.rglob("*.html")):
        page = Html(file.relative_to(site).as_posix())
        page.feed(file.read_text("utf-8"))
        pages[page.path] = page
    return pages


def faults(site: Path, pages: dict[str, Html]) -> Iterator[str]:
    """Yield each fault of a built site with these pages, one line each."""
    for page in pages.values():
        yield from _dead_links(site, pages, page)
        yield from (f"{page.path}: loads {address} from another host" for address in page.loaded if _host(address))
        yield from (f"{page.path}: the picture {source} has no text in its place" for source in page.unlabelled)
        yield from _foreign_styles(page.path, page.styled)
        if (size := weight(site, page)) > MAX_PAGE_BYTES and page.path not in HEAVY:
            yield f"{page.path}: {size:,} bytes with styles and scripts, over {MAX_PAGE_BYTES:,}"
    for style in sorted(site.rglob("*.css")):
        yield from _foreign_styles(style.relative_to(site).as_posix(), style.read_text("utf-8"))


def weight(site: Path, page: Html) -> int:
    """Bytes of a page with its styles and scripts, without pictures."""
    files = {site / page.path}
    for address in page.loaded:
        file = _file(site, page.path, address)
        if file.suffix in {".css", ".js"} and file.is_file():
            files.add(file)
    return sum(file.stat().st_size for file in files)


def _dead_links(site: Path, pages: dict[str, Html], page: Html) -> Iterator[str]:
    for target in dict.fromkeys([*page.links, *page.loaded]):
        parts = urlsplit(target)
        if parts.scheme or parts.netloc:
            continue
        path = _path(site.resolve(), (site / page.path).parent, parts.path) if parts.path else page.path
        if path is None:
            yield f"{page.path}: the link {target} leads nowhere"
            continue
        other = pages.get(path)
        if parts.fragment and other and unquote(parts.fragment) not in other.ids:
            yield f"{page.path}: the link {target} has an anchor that is not there"


@cache
def _path(site: Path, folder: Path, target: str) -> str | None:
    """Path in the site of a file that a page in this folder links to. Cached: all pages share a contents list."""
    file = folder / unquote(target)
    if file.is_dir():
        file /= "index.html"
    file = file.resolve()
    return file.relative_to(site).as_posix() if file.is_file() and file.is_relative_to(site) else None


def _file(site: Path, place: str, target: str) -> Path:
    path = unquote(urlsplit(target).path)
    return (site / place).parent / path if path else site / place


def _host(address: str) -> str:
    return "" if address.startswith("data:") else urlsplit(address).netloc


def _foreign_styles(path: str, style: str) -> Iterator[str]:
    yield from (f"{path}: loads {url} from another host" for url in _STYLE_URL.findall(style) if _host(url))
