"""Set the version of weir in every file that has it, and give the changes since the last one this version.

    python3 scripts/package/set_version.py 1.2.3 2026-12-31

Nothing is written if a file lacks the current version where it is expected.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
# Semantic versions that Python's packages and Debian's can have, too.
_VERSION = re.compile(r"^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-(alpha|beta|rc)\.\d+)?$")
_CURRENT = re.compile(r'\[workspace\.package\]\nversion = "([^"]+)"')

PLACES = {
    "Cargo.toml": ['version = "{}"\nedition', 'weir-[a-z0-9-]+ = {{ path = "[^"]+", version = "{}"'],
    ".github/ISSUE_TEMPLATE/fault.yml": ["placeholder: weir {} "],
    "docs/agents.md": ["weir-http=={}\n"],
    "docs/install.md": [" weir:{} load "],
    "docs/scenarios.md": ["User-Agent: weir/{}\n"],
    "packaging/helm/weir-gate/Chart.yaml": [r"\nversion: {}\n", r"\nappVersion: {}\n"],
    "examples/agents/Dockerfile": ["weir-http=={}"],
    "examples/compose/compose.yaml": ["WEIR_VERSION={} ", "WEIR_VERSION:-{}}}"],
    "examples/kubernetes/load-job.yaml": ["weir:{}\n"],
}
"""Patterns that contain the version, by file; each occurs at least once."""


def current() -> str:
    """Return the version of Cargo.toml."""
    found = _CURRENT.search((ROOT / "Cargo.toml").read_text("utf-8"))
    if not found:
        sys.exit("Cargo.toml has no version in [workspace.package]")
    return found[1]


def with_version(text: str, patterns: list[str], old: str, new: str) -> str | None:
    """Return the text with the new version in place of the old one; None if a pattern does not occur."""
    for pattern in patterns:
        place = re.compile(pattern.format(re.escape(old)))
        if not place.search(text):
            return None
        text = place.sub(lambda found: found[0].replace(old, new), text)
    return text


def with_section(changes: str, version: str, date: str) -> str | None:
    """Return the changes with a date at the section of this version; None if there are no changes.

    Without such a section it is that of the unreleased changes, below an empty one.
    """
    own = f"\n## [{version}]\n"
    if own in changes:
        return changes.replace(own, f"\n## [{version}] - {date}\n")
    head, heading, rest = changes.partition("\n## [Unreleased]\n")
    if not heading or not rest.partition("\n## ")[0].strip():
        return None
    return f"{head}{heading}\n## [{version}] - {date}\n{rest}"


def main(version: str, date: str) -> int:
    """Write the files, and return the exit code."""
    old = current()
    if not _VERSION.match(version):
        print(f"invalid version '{version}'; write e.g. 1.2.3 or 1.2.3-rc.1", file=sys.stderr)
        return 2
    written = {}
    for name, patterns in PLACES.items():
        text = with_version((ROOT / name).read_text("utf-8"), patterns, old, version)
        if text is None:
            print(f"{name}: version {old} is not where it is expected; see PLACES in {__file__}", file=sys.stderr)
            return 2
        written[name] = text
    changes = with_section((ROOT / "CHANGELOG.md").read_text("utf-8"), version, date)
    if changes is None:
        print(f"CHANGELOG.md: nothing under [{version}] or [Unreleased]; a release needs changes", file=sys.stderr)
        return 2
    written["CHANGELOG.md"] = changes
    for name, text in written.items():
        (ROOT / name).write_text(text, "utf-8")
    print(f"{old} -> {version} in {', '.join(written)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
