"""Write an image of the command as an OCI layout in a tar file, without a daemon.

    python3 scripts/package/oci_image.py PROGRAM VERSION IMAGE.tar

The image has one layer: the program, the shared libraries that it needs from this machine, CA certificates, and a
user without rights. `podman load`, `docker load` (25 or later), `skopeo copy oci-archive:` and `crane push` read it.
The same files give the same bytes; the time in it is SOURCE_DATE_EPOCH.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import re
import subprocess
import sys
import tarfile
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

USER = 65532
"""User and group of the process."""
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
COPYRIGHTS = [Path("/usr/share/doc/libc6/copyright")]
"""Licences of what is copied from this machine."""
_LIBRARY = re.compile(r"(?:^|=> )\s*(/\S+) \(0x", re.M)
_TIME = int(os.environ.get("SOURCE_DATE_EPOCH", "1577836800"))


def libraries(program: Path) -> list[Path]:
    """Return the shared libraries that a program needs, with the loader."""
    done = subprocess.run(["ldd", program], capture_output=True, text=True, check=True)
    return [Path(found) for found in _LIBRARY.findall(done.stdout)]


class Layer:
    """Files of an image."""

    def __init__(self) -> None:
        """Begin without files."""
        self._entries: dict[str, tuple[tarfile.TarInfo, bytes]] = {}

    def add(self, path: str, content: bytes, mode: int = 0o644) -> None:
        """Add a file, and the folders above it."""
        self._add(path, content, mode, tarfile.REGTYPE)

    def add_folder(self, path: str, mode: int = 0o755) -> None:
        """Add an empty folder."""
        self._add(path, b"", mode, tarfile.DIRTYPE)

    def _add(self, path: str, content: bytes, mode: int, kind: bytes) -> None:
        path = path.strip("/")
        for parent in Path(path).parents:
            if parent.name and str(parent) not in self._entries:
                self._add(str(parent), b"", 0o755, tarfile.DIRTYPE)
        entry = tarfile.TarInfo(path)
        entry.type, entry.mode, entry.size, entry.mtime = kind, mode, len(content), _TIME
        self._entries[path] = (entry, content)

    def tar(self) -> bytes:
        """Return the layer, uncompressed, in the order of its paths."""
        return _tar(self._entries[path] for path in sorted(self._entries))


def _tar(entries: Any) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for entry, content in entries:
            archive.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


def layer_of(program: Path) -> Layer:
    """Return the files of the image."""
    layer = Layer()
    layer.add("usr/bin/weir", program.read_bytes(), 0o755)
    for library in libraries(program):
        layer.add(str(library), library.read_bytes(), 0o755)
    for file in [CERTIFICATES, *COPYRIGHTS]:
        layer.add(str(file), file.read_bytes())
    layer.add("usr/share/doc/weir/LICENSE", (Path(__file__).parents[2] / "LICENSE").read_bytes())
    user = f"weir:x:{USER}:{USER}:weir:/work:/sbin/nologin"
    layer.add("etc/passwd", f"root:x:0:0:root:/:/sbin/nologin\n{user}\n".encode())
    layer.add("etc/group", f"root:x:0:\nweir:x:{USER}:\n".encode())
    layer.add("etc/nsswitch.conf", b"passwd: files\ngroup: files\nhosts: files dns\n")
    layer.add_folder("tmp", 0o1777)
    layer.add_folder("work", 0o777)
    return layer


class Blobs:
    """Content of a layout, by digest."""

    def __init__(self) -> None:
        """Begin without content."""
        self.entries: list[tuple[tarfile.TarInfo, bytes]] = []

    def add(self, kind: str, content: bytes) -> dict[str, Any]:
        """Add a blob and return its descriptor."""
        digest = hashlib.sha256(content).hexdigest()
        self.add_file(f"blobs/sha256/{digest}", content)
        return {"mediaType": kind, "digest": f"sha256:{digest}", "size": len(content)}

    def add_json(self, kind: str, content: dict[str, Any]) -> dict[str, Any]:
        """Add an object and return its descriptor."""
        return self.add(kind, json.dumps(content, sort_keys=True, separators=(",", ":")).encode())

    def add_file(self, path: str, content: bytes) -> None:
        """Add a file of the layout."""
        entry = tarfile.TarInfo(path)
        entry.size, entry.mtime, entry.mode = len(content), _TIME, 0o644
        self.entries.append((entry, content))


def image(program: Path, version: str) -> bytes:
    """Return the layout as a tar file."""
    blobs = Blobs()
    layer = layer_of(program).tar()
    compressed = gzip.compress(layer, compresslevel=9, mtime=0)
    kind = "application/vnd.oci.image"
    layer_entry = blobs.add(f"{kind}.layer.v1.tar+gzip", compressed)
    created = datetime.fromtimestamp(_TIME, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    config = {
        "architecture": "amd64",
        "os": "linux",
        "created": created,
        "config": {
            "User": f"{USER}:{USER}",
            "Entrypoint": ["/usr/bin/weir"],
            "Env": ["PATH=/usr/bin"],
            "WorkingDir": "/work",
            "Labels": {
                "org.opencontainers.image.title": "weir",
                "org.opencontainers.image.version": version,
                "org.opencontainers.image.licenses": "Apache-2.0",
            },
        },
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
        "history": [{"created": created, "created_by": "scripts/package/oci_image.py"}],
    }
    config_entry = blobs.add_json(f"{kind}.config.v1+json", config)
    manifest = {
        "schemaVersion": 2,
        "mediaType": f"{kind}.manifest.v1+json",
        "config": config_entry,
        "layers": [layer_entry],
    }
    manifest_entry = blobs.add_json(f"{kind}.manifest.v1+json", manifest)
    manifest_entry["platform"] = {"architecture": "amd64", "os": "linux"}
    # Docker and Podman take the name of the image from these.
    manifest_entry["annotations"] = {
        "io.containerd.image.name": f"docker.io/library/weir:{version}",
        "org.opencontainers.image.ref.name": f"weir:{version}",
    }
    index = {"schemaVersion": 2, "mediaType": f"{kind}.index.v1+json", "manifests": [manifest_entry]}
    blobs.add_file("index.json", json.dumps(index, sort_keys=True).encode())
    blobs.add_file("oci-layout", b'{"imageLayoutVersion":"1.0.0"}')
    return _tar(blobs.entries)


def main(program: str, version: str, target: str) -> None:
    """Write the image."""
    Path(target).write_bytes(image(Path(program), version))


if __name__ == "__main__":
    main(*sys.argv[1:])
