"""Links between Markdown files: found outside code, and rewritten."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator, Mapping

_TARGET = re.compile(r"(?<=\]\()([^)\s]+)(?=\))")
_FENCE = re.compile(r"^\s*(```+|~~~+)")
_CODE = re.compile(r"(`+[^`]*`+)")
_FILE_NAME = re.compile(r"\[[\w/-]+\.md\](?=\(([^)\s#]+?)\.md(?:#[^)\s]*)?\))")
_FOREIGN = re.compile(r"^[a-z][a-z0-9+.-]*:|^//", re.I)


def _prose(text: str) -> Iterator[tuple[str, bool]]:
    """Yield pieces of a Markdown text, and whether each is prose rather than code."""
    fence = ""
    for line in text.splitlines(keepends=True):
        found = _FENCE.match(line)
        if found and (not fence or found[1].startswith(fence)):
            fence = "" if fence else found[1]
            yield line, False
        elif fence:
            yield line, False
        else:
            yield from ((piece, number % 2 == 0) for number, piece in enumerate(_CODE.split(line)))


def rewritten(text: str, change: Callable[[str], str]) -> str:
    """Text whose link targets went through a function."""
    pieces = (_TARGET.sub(lambda m: change(m[1]), piece) if is_prose else piece for piece, is_prose in _prose(text))
    return "".join(pieces)


def targets(text: str) -> list[str]:
    """Targets of all links of a text, in order."""
    found: list[str] = []
    rewritten(text, lambda target: found.append(target) or target)  # type: ignore[func-returns-value]
    return found


def titled(text: str, place: str, titles: Mapping[str, str]) -> str:
    """Text whose links have titles of pages in place of names of files, which no reader of the site has.

    Args:
        text: Markdown of a page.
        place: Path of the page.
        titles: Titles of pages, by their paths without suffix.
    """

    def title(found: re.Match[str]) -> str:
        return f"[{titles.get(resolved(place, found[1]), found[1])}]"

    return _FILE_NAME.sub(title, text)


def is_local(target: str) -> bool:
    """Whether a target is a file of the repository."""
    return not target.startswith("#") and not _FOREIGN.match(target)


def resolved(place: str, target: str) -> str:
    """Path that a relative target names on the page `place`, both from the same root."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(place), target))


def relative(place: str, path: str) -> str:
    """Target for `path` on the page `place`, both from the same root."""
    return posixpath.relpath(path, posixpath.dirname(place) or ".")
