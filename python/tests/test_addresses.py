"""Public addresses: packaging/addresses.toml is the only place that has them, and packages have what it has."""

from __future__ import annotations

import re

import pytest
from naming import ROOT

pytestmark = pytest.mark.wide


def table(file: str, name: str) -> dict[str, str]:
    """Texts of a table of a TOML file; tomllib requires Python 3.11, and weir supports 3.10."""
    text = (ROOT / file).read_text("utf-8")
    body = text.partition(f"[{name}]\n")[2] if name else text
    lines = body.partition("\n[")[0].splitlines()
    return {found[1]: found[2] for line in lines if (found := re.match(r'^([\w-]+) = "(.*)"$', line))}


def addresses() -> dict[str, str]:
    return table("packaging/addresses.toml", "")


def test_there_are_two_addresses_or_placeholders_for_them() -> None:
    assert addresses().keys() == {"repository", "documentation"}
    assert all(re.match(r"^(https://\S+[^/])?$", address) for address in addresses().values())


def test_packages_have_the_addresses_that_exist() -> None:
    known = {name: address for name, address in addresses().items() if address}
    assert {name.lower(): address for name, address in table("pyproject.toml", "project.urls").items()} == known
    crate = table("Cargo.toml", "workspace.package")
    assert {name: crate[name] for name in ("repository", "documentation") if name in crate} == known


def test_the_help_of_commands_has_the_address_of_the_documentation() -> None:
    text = (ROOT / "crates" / "base" / "command" / "src" / "pages.rs").read_text("utf-8")
    documentation = addresses()["documentation"]
    expected = f"{documentation}/" if documentation else "docs/"
    assert f'const DOCS: &str = "{expected}";' in text


def test_pages_have_no_address_of_their_own() -> None:
    """Without an address, none is invented: no page links a host of repositories."""
    known = tuple(address for address in addresses().values() if address)
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    links = [
        f"{page.relative_to(ROOT)}: {link}"
        for page in pages
        for link in re.findall(r"\]\((https?://[^)\s]+/weir\b[^)\s]*)\)", page.read_text("utf-8"))
        if not (known and link.startswith(known))
    ]
    assert links == []
