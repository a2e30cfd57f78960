"""Causes of missed goals, with the floor that was found for each, from a table of a design page."""

from __future__ import annotations

import re
from pathlib import Path

from harness.programs import ROOT

PAGE = ROOT / "docs" / "design" / "gate-peers.md"
HEADING = "Missed goals"


def causes(page: Path = PAGE) -> dict[str, str]:
    """Read the table below the heading: columns goal, cause and floor; a row without a cause is left out.

    Raises:
        LookupError: Without the heading, or with a row that has another number of columns.
    """
    _, found, rest = page.read_text().partition(f"\n## {HEADING}\n")
    if not found:
        raise LookupError(f"{page}: no heading {HEADING!r}")
    rows = re.findall(r"^\|(.*)\|$", rest.split("\n## ")[0], re.MULTILINE)[2:]
    said = {}
    for row in rows:
        cells = [cell.strip() for cell in row.split("|")]
        if len(cells) != 3:
            raise LookupError(f"{page}: a row of {HEADING!r} has {len(cells)} columns instead of 3: {row.strip()}")
        goal, cause, floor = cells
        if cause:
            said[goal] = f"{cause}; floor: {floor}" if floor else cause
    return said
