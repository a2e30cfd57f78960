"""Pages of the site: names, the text for Sphinx, and the plain Markdown beside the built page."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_HEADING = re.compile(r"^# (.+)$", re.M)
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_NOT_PROSE = ("#", "|", "!", "```", "- ", "<", "$")


@dataclass
class Page:
    """A page of the site.

    Attributes:
        name: Name without suffix, relative to the site's root, such as ``load`` or ``gate/policies``.
        source: Path of its file in the repository; empty for a page that is made from the program.
        text: Text for Sphinx: Markdown, with MyST's directives on pages that are made.
        plain: Plain Markdown; empty if `text` is.
        children: Names of the pages below it, in order.
        is_listed: Whether it has a place in the table of contents.
    """

    name: str
    source: str
    text: str
    plain: str = ""
    children: list[str] = field(default_factory=list)
    is_listed: bool = True

    @property
    def markdown(self) -> str:
        """Plain Markdown of the page."""
        return self.plain or self.text

    @property
    def title(self) -> str:
        """First heading, without the marks of code."""
        found = _HEADING.search(self.markdown)
        return found[1].replace("`", "") if found else self.name

    @property
    def summary(self) -> str:
        """First sentence of the first paragraph, without links."""
        heading = _HEADING.search(self.markdown)
        blocks = re.split(r"\n\s*\n", self.markdown[heading.end() :].strip() if heading else self.markdown)
        text = next((block for block in blocks if block and not block.startswith(_NOT_PROSE)), "")
        text = _LINK.sub(r"\1", " ".join(text.split()))
        return re.split(r"(?<=[\w`)*]\.) (?=[A-Z`])", text)[0]
