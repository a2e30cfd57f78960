"""Check that programs run on an old glibc, by the versions of the symbols that they need.

    python3 scripts/package/glibc.py 2.17 FILE...

A file is a program, a shared library, or a wheel with some of both. The exit code is 1 if one needs a newer glibc.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

_ELF = b"\x7fELF"
_VERSION = re.compile(r"Name: GLIBC_(\d+(?:\.\d+)*)\b")

Version = tuple[int, ...]


def parse(version: str) -> Version:
    """Split a version at its dots."""
    return tuple(int(part) for part in version.split("."))


def needed(program: Path) -> Version:
    """Return the newest version of glibc of which a program needs a symbol; (0,) without one."""
    done = subprocess.run(["readelf", "--version-info", "--wide", program], capture_output=True, text=True, check=True)
    return max((parse(found) for found in _VERSION.findall(done.stdout)), default=(0,))


def programs(file: Path, folder: Path) -> Iterator[Path]:
    """Yield the programs and libraries in a file."""
    if file.suffix != ".whl":
        yield file
        return
    with zipfile.ZipFile(file) as wheel:
        for name in wheel.namelist():
            if wheel.read(name)[:4] == _ELF:
                yield Path(wheel.extract(name, folder))


def main(oldest: str, *files: str) -> int:
    """Print what each program needs, and return the exit code."""
    code = 0
    with tempfile.TemporaryDirectory() as folder:
        found = [program for file in files for program in programs(Path(file), Path(folder))]
        for program in found:
            version = needed(program)
            is_fine = version <= parse(oldest)
            shown = ".".join(str(part) for part in version)
            print(f"{program.name}: needs glibc {shown}{'' if is_fine else f', which is newer than {oldest}'}")
            code = max(code, int(not is_fine))
    if not found:
        print(f"no program in {', '.join(files)}", file=sys.stderr)
        return 2
    return code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
