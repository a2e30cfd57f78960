"""Blocks of code on the pages of the documentation, for tests that run them."""

from __future__ import annotations

import re

from naming import ROOT

_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)


def blocks(page: str, language: str) -> list[str]:
    """Blocks of a language on a page, which is named by its path in the repository."""
    text = (ROOT / page).read_text("utf-8")
    return [body for found, body in _BLOCK.findall(text) if found == language]


def commands(page: str) -> list[str]:
    """Commands of a page's console blocks, in order, without their output; continued lines are one."""
    found: list[str] = []
    for block in blocks(page, "console"):
        is_continued = False
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append(line[2:])
            elif line.startswith("> ") and found:
                found[-1] += f"\n{line[2:]}"
            elif is_continued:
                found[-1] += f"\n{line}"
            is_continued = line.endswith(("\\", "|")) and (line.startswith("$ ") or is_continued)
    return found
