"""Programs: the binaries built here, and the peers found on this machine."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = ROOT / "benches" / "scripts"
STUDIES = ROOT / "studies"
PEERS = ROOT / "benches" / "out" / "peers"

OURS = ("weir", "floor", "lean", "cost", "store")
#: Flag of each peer that prints its version.
VERSION_FLAGS = {
    "nginx": "-v",
    "haproxy": "-v",
    "caddy": "version",
    "envoy": "--version",
    "wrk": "-v",
    "ab": "-V",
    "h2load": "--version",
    "oha": "--version",
    "k6": "version",
    "ghz": "--version",
    "locust": "--version",
    "guidellm": "--version",
    "aiperf": "--version",
    "jmeter": "--version",
    "civetweb-functions": "--version",
    "microhttpd-functions": "--version",
    "redis-server": "--version",
}


@dataclass(frozen=True)
class Programs:
    """Paths by name, of the programs that were built or found."""

    paths: dict[str, Path]
    versions: dict[str, str] = field(default_factory=dict)

    def __contains__(self, name: str) -> bool:
        """Check whether the program is available."""
        return name in self.paths

    def __getitem__(self, name: str) -> Path:
        """Return the path of the program."""
        return self.paths[name]

    def missing(self) -> list[str]:
        """Return the names of missing programs."""
        return [name for name in (*OURS, *VERSION_FLAGS) if name not in self.paths]


def find(packaged: Path | None = None) -> Programs:
    """Build our programs, find the peers, and read all versions; a package's command takes the place of ours."""
    paths = build() | peers()
    if packaged:
        paths["weir"] = packaged
    versions = {name: version(paths[name], flag) for name, flag in VERSION_FLAGS.items() if name in paths}
    if "weir" in paths:
        origin = "of a package" if packaged else "in the profile release"
        versions["weir"] = f"{version(paths['weir'], '--version')} {origin}"
    return Programs(paths, versions)


def build() -> dict[str, Path]:
    """Build the command and the bench programs for release; return the paths of those that were built."""
    command = ["cargo", "build", "--release", "--quiet", "--message-format=json-render-diagnostics"]
    targets = [
        "-p",
        "weir-cli",
        "-p",
        "weir-http",
        "--bin",
        "weir",
        "--bench",
        "floor",
        "--bench",
        "lean",
        "--bench",
        "cost",
        "--bench",
        "store",
    ]
    built = subprocess.run([*command, *targets], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    paths = {}
    for line in built.stdout.splitlines():
        message = json.loads(line)
        name = message.get("target", {}).get("name")
        if name in OURS and message.get("executable"):
            paths[name] = Path(message["executable"])
    return paths


def peers() -> dict[str, Path]:
    """Find the peers on PATH or where peers.sh installs them."""
    places = [str(PEERS / folder) for folder in ("bin", "venv/bin", "guidellm/bin", "aiperf/bin")]
    path = os.pathsep.join([*places, os.environ.get("PATH", ""), "/usr/sbin"])
    found = {name: shutil.which(name, path=path) for name in VERSION_FLAGS}
    return {name: Path(place) for name, place in found.items() if place}


def version(program: Path, flag: str) -> str:
    """Return the first part of the program's output that looks like a version."""
    said = subprocess.run([program, flag], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    match = re.search(r"\d+(\.\d+)+", said.stdout)
    return match.group() if match else "?"
