"""Table of contents beside each page, from the titles of pages alone.

Sphinx copies the headings of all pages for each page, and drops them afterwards: half of the time of a build.
"""

from __future__ import annotations

from collections.abc import Callable
from html import escape

from sphinx.addnodes import toctree
from sphinx.environment import BuildEnvironment


class Navigation:
    """Sections and pages of a site, as HTML for each page."""

    def __init__(self, env: BuildEnvironment) -> None:
        """Take the places and titles of all pages."""
        self._titles = {name: escape(title.astext()) for name, title in env.titles.items()}
        self._below = env.toctree_includes
        index = env.get_doctree(env.config.root_doc)
        self._sections = [
            (tree["caption"] or "", [name for _, name in tree["entries"]]) for tree in index.findall(toctree)
        ]

    def html(self, current: str, address: Callable[[str], str]) -> str:
        """Lists of all sections on the page `current`; `address` has that of another page, relative to it."""
        parts = []
        for caption, names in self._sections:
            title = f'<span class="caption-text">{escape(caption)}</span>'
            parts.append(f'<p class="caption" role="heading" aria-level="2">{title}</p>')
            parts.append(f"<ul>{''.join(self._item(name, current, address, 1) for name in names)}</ul>")
        return "".join(parts)

    def _item(self, name: str, current: str, address: Callable[[str], str], depth: int) -> str:
        below = [self._item(inner, current, address, depth + 1) for inner in self._below.get(name, [])]
        is_current = name == current
        is_above = any(" current" in item for item in below)
        mark = " current" if is_current or is_above else ""
        page = " current-page" if is_current else ""
        target = "#" if is_current else address(name)
        # Pages below others are listed where a reader is: all of them on each page would be a third of its bytes.
        inner = f"<ul>{''.join(below)}</ul>" if below and mark else ""
        link = f'<a class="reference internal" href="{target}">{self._titles[name]}</a>'
        return f'<li class="toctree-l{depth}{mark}{page}">{link}{inner}</li>'
