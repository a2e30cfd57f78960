"""Write the bill of materials of the command, and the licences of what is compiled into it.

    python3 scripts/package/dependencies.py sbom > weir.cdx.json          # CycloneDX 1.6, as JSON
    python3 scripts/package/dependencies.py licences > THIRD-PARTY.txt

Both are of the crates that the released command contains, from Cargo.lock by `cargo metadata`: no build or test
dependencies. Their sources have to be there (`cargo fetch --locked`), since licences are in them.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
COMMAND = "weir-cli"
PLATFORM = "x86_64-unknown-linux-gnu"
_REGISTRY = "registry+https://github.com/rust-lang/crates.io-index"
_LICENCE_FILE = re.compile(r"^(licen[cs]e|copying|copyright|notice|unlicense)", re.I)
_CHECKSUM = re.compile(r'name = "([^"]+)"\nversion = "([^"]+)"\nsource = "[^"]+"\nchecksum = "([0-9a-f]{64})"')


@dataclass
class Crate:
    """Crate that is compiled into the command.

    Attributes:
        id: ID of cargo.
        name: Name.
        version: Version.
        licence: SPDX expression of its manifest.
        is_own: Whether it is one of weir.
        folder: Folder of its source.
        repository: Address of its source, or "".
        needs: IDs of the crates that it depends on.
    """

    id: str
    name: str
    version: str
    licence: str
    is_own: bool
    folder: Path
    repository: str
    needs: list[str] = field(default_factory=list)

    @property
    def purl(self) -> str:
        """Package URL."""
        return f"pkg:cargo/{self.name}@{self.version}"

    def licence_files(self) -> Iterator[Path]:
        """Yield the texts of its licences, in order; without any, those beside sources in C that it carries."""
        named = [file for file in sorted(self.folder.iterdir()) if file.is_file() and _LICENCE_FILE.match(file.name)]
        yield from named or (file for file in sorted(self.folder.glob("*/*")) if _LICENCE_FILE.match(file.name))


def crates() -> list[Crate]:
    """Return the command and all crates in it, the command first."""
    options = ["--format-version", "1", "--locked", "--offline", "--filter-platform", PLATFORM]
    done = subprocess.run(["cargo", "metadata", *options], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(f"cargo metadata ended with {done.returncode}; run: cargo fetch --locked")
    metadata = json.loads(done.stdout)
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    [command] = [key for key, package in packages.items() if package["name"] == COMMAND]
    found: dict[str, Crate] = {}
    pending = [command]
    while pending:
        key = pending.pop()
        if key in found:
            continue
        found[key] = _crate(packages[key])
        kinds = [(dep, kind) for dep in nodes[key]["deps"] for kind in dep["dep_kinds"]]
        needs = {dep["pkg"] for dep, kind in kinds if _is_inside(packages, dep, kind)}
        found[key].needs = sorted(needs)
        pending += needs
    return sorted(found.values(), key=lambda crate: (crate.id != command, crate.name, crate.version))


def _is_inside(packages: dict[str, Any], dependency: dict[str, Any], kind: dict[str, Any]) -> bool:
    """Whether a dependency is in the program: a normal one, whose kind is None, or the source of a library in C."""
    return kind["kind"] is None or (kind["kind"] == "build" and packages[dependency["pkg"]]["name"].endswith("-src"))


def _crate(package: dict[str, Any]) -> Crate:
    licence = " ".join((package["license"] or "").replace("/", " OR ").split())
    folder = Path(package["manifest_path"]).parent
    is_own = package["source"] != _REGISTRY
    source = package["repository"] or ""
    return Crate(package["id"], package["name"], package["version"], licence, is_own, folder, source)


def sbom() -> str:
    """Return the bill of materials."""
    found = crates()
    text = (ROOT / "Cargo.lock").read_text("utf-8")
    sums = {(name, version): digest for name, version, digest in _CHECKSUM.findall(text)}
    by_id = {crate.id: crate for crate in found}
    time = datetime.fromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH", "1577836800")), timezone.utc)
    command = found[0]
    bill = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        # The same dependencies have the same number.
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, command.purl + text)}",
        "version": 1,
        "metadata": {
            "timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": {**_component(command, sums), "type": "application"},
        },
        "components": [_component(crate, sums) for crate in found[1:]],
        "dependencies": [
            {"ref": crate.purl, "dependsOn": sorted({by_id[key].purl for key in crate.needs})} for crate in found
        ],
    }
    return json.dumps(bill, indent=1) + "\n"


def _component(crate: Crate, sums: dict[tuple[str, str], str]) -> dict[str, Any]:
    component: dict[str, Any] = {
        "type": "library",
        "bom-ref": crate.purl,
        "name": crate.name,
        "version": crate.version,
        "purl": crate.purl,
    }
    if crate.licence:
        component["licenses"] = [{"expression": crate.licence}]
    if digest := sums.get((crate.name, crate.version)):
        component["hashes"] = [{"alg": "SHA-256", "content": digest}]
    if crate.repository.startswith("http"):
        component["externalReferences"] = [{"type": "vcs", "url": crate.repository}]
    return component


def licences() -> str:
    """Return the texts of all licences, each once, with the crates that it is of."""
    holders: dict[str, list[str]] = {}
    without = []
    for crate in crates():
        if crate.is_own:
            continue
        texts = [file.read_text("utf-8", "replace").replace("\r\n", "\n").strip() for file in crate.licence_files()]
        label = f"{crate.name} {crate.version} ({crate.licence or 'no licence named'})"
        if not texts:
            without.append(f"{label} {crate.repository}")
        for text in texts:
            holders.setdefault(text, []).append(label)
    parts = ["Licences of the libraries that are compiled into weir.\n"]
    for text, labels in sorted(holders.items(), key=lambda entry: entry[1]):
        parts.append(f"{'=' * 100}\n{chr(10).join(sorted(set(labels)))}\n{'-' * 100}\n{text}\n")
    if without:
        heading = "Crates without a text of their licence in their package:"
        parts.append("\n".join(["=" * 100, heading, *without, ""]))
    return "\n".join(parts)


def main(what: str) -> int:
    """Print the bill of materials, or the licences."""
    writers = {"sbom": sbom, "licences": licences}
    if what not in writers:
        print(f"unknown output '{what}'; choose sbom or licences", file=sys.stderr)
        return 2
    sys.stdout.write(writers[what]())
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
