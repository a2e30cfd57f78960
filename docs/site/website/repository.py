"""Files of the repository as pages: documentation as it is, and files that it links as pages with their text."""

from __future__ import annotations

import posixpath
import shutil
from collections.abc import Iterable
from pathlib import Path

from website import links
from website.page import Page

_ROOTS = {"CHANGELOG.md": "changelog", "CONTRIBUTING.md": "contributing", "SECURITY.md": "security"}
_ROOTS |= {"CODE_OF_CONDUCT.md": "conduct"}
_LANGUAGES = {".c": "c", ".h": "c", ".json": "json", ".lua": "lua", ".py": "python", ".rs": "rust", ".toml": "toml"}
_LANGUAGES |= {".hurl": "hurl", ".yaml": "yaml", ".sh": "bash"}
_COPIED = {".png", ".svg", ".json"}


def page_name(path: str) -> str:
    """Name of the page of a Markdown file, by its path in the repository; empty if it has none."""
    if path == "README.md":
        return "index"
    if path in _ROOTS:
        return _ROOTS[path]
    if not path.endswith(".md") or not path.startswith(("docs/", "studies/")):
        return ""
    name = path.removeprefix("docs/").removesuffix(".md")
    return posixpath.join(posixpath.dirname(name), "index") if posixpath.basename(name) == "README" else name


class Documents:
    """The documentation's files, as pages whose links lead to pages.

    Attributes:
        pages: Pages by name.
        copied: Paths in the repository of pictures and data, with their paths in the site.
    """

    def __init__(self, root: Path, schemas: Iterable[str]) -> None:
        """Read all pages below `root`; `schemas` are names of files that have pages in `schemas/`."""
        self._root = root
        self._schemas = set(schemas)
        self.pages: dict[str, Page] = {}
        self.copied: dict[str, str] = {}
        for path in sorted(self._files()):
            self._add(path)

    def _files(self) -> Iterable[str]:
        folders = [self._root / "docs", self._root / "studies"]
        files = [file for folder in folders for file in folder.rglob("*.md")]
        names = [file.relative_to(self._root).as_posix() for file in files]
        yield from (name for name in names if not name.startswith(("docs/site/", "docs/plan")))
        yield from _ROOTS

    def _add(self, path: str) -> None:
        name = page_name(path)
        text = (self._root / path).read_text("utf-8")
        self.pages[name] = Page(name, path, links.rewritten(text, lambda target: self._target(path, name, target)))

    def _target(self, path: str, name: str, target: str) -> str:
        """Target on the site of a link on the file `path`, whose page is `name`."""
        if not links.is_local(target):
            return target
        file, mark, anchor = target.partition("#")
        to = links.resolved(path, file)
        return links.relative(f"{name}.md", self._place(path, to)) + mark + anchor

    def _place(self, path: str, to: str) -> str:
        """Path on the site of a file or folder of the repository, which is made a page if it needs to be."""
        if not (self._root / to).exists():
            raise FileNotFoundError(f"{path}: the link to {to} leads nowhere")
        if page := page_name(to):
            return f"{page}.md"
        base = posixpath.basename(to)
        if base in self._schemas:
            return f"schemas/{base.removesuffix('.schema.json')}.md"
        if Path(to).suffix in _COPIED:
            self.copied[to] = to.removeprefix("docs/")
            return self.copied[to]
        return f"{self._source(to)}.md"

    def _source(self, to: str) -> str:
        """Name of the page with the text of a file, or the list of a folder."""
        file = self._root / to
        name = f"source/{to}/index" if file.is_dir() else f"source/{to}"
        if name in self.pages:
            return name
        page = self.pages[name] = Page(name, to, "", is_listed=False)
        if file.is_dir():
            inner = sorted(entry.name for entry in file.iterdir() if entry.is_file() and entry.name != "README.md")
            places = [links.relative(f"{name}.md", self._place(to, f"{to}/{entry}")) for entry in inner]
            rows = "".join(f"- [{entry}]({place})\n" for entry, place in zip(inner, places, strict=True))
            page.text = f"# {to}\n\nFiles of this folder of the repository:\n\n{rows}"
        else:
            text = file.read_text("utf-8").rstrip("\n")
            language = _LANGUAGES.get(file.suffix, "text")
            page.text = f"# {to}\n\nA file of the repository.\n\n````{language}\n{text}\n````\n"
        return name

    def copy_files(self, to: Path) -> None:
        """Copy the pictures and data of all pages into a folder."""
        for path, place in self.copied.items():
            (to / place).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(self._root / path, to / place)
