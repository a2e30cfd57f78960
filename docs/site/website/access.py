"""Repairs of what Sphinx and its theme write, for readers with a keyboard or a screen reader.

axe-core finds each of these faults on pages as they are written: two asides without a name, tables with an empty
heading, and parameters of a signature as definitions without terms.
"""

from __future__ import annotations

import re
from pathlib import Path

_ASIDES = {
    '<aside class="sidebar-drawer"': "Site navigation",
    '<aside class="toc-drawer': "On this page",
}
"""Asides by the start of their tag, with their names."""

_EMPTY_HEADING = re.compile(r'<th class="head[^"]*"><p></p></th>')
_PARAMETERS = re.compile(r"<dl>\n((?:<dd>.*</dd>\n)+)</dl>")
_PARAMETER = re.compile(r"<dd>(.*)</dd>")


def mended(html: str) -> str:
    """Return a page without these faults."""
    for start, name in _ASIDES.items():
        html = html.replace(start, start.replace("<aside", f'<aside aria-label="{name}"'))
    html = _EMPTY_HEADING.sub("<td></td>", html)
    return _PARAMETERS.sub(_parameters, html)


def _parameters(found: re.Match[str]) -> str:
    inner = _PARAMETER.sub(r"<div>\1</div>", found[1])
    return f'<div class="sig-parameters">\n{inner}</div>'


def mend(site: Path) -> None:
    """Mend all pages of a built site."""
    for page in site.rglob("*.html"):
        page.write_text(mended(page.read_text("utf-8")), "utf-8")
