"""Build backend of the Python package: maturin's, with the `weir` program in the wheel beside the extension.

A wheel's program starts in milliseconds, since no interpreter runs. Cargo builds it before maturin packs what is in
`python/weir.data`. Both are built in the profile `source`, which takes less time to build than `release`, and as much
for a request; WEIR_PROFILE names another one.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import maturin
from doc_pages import copy_pages
from maturin import (
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
)

ROOT = Path(__file__).parents[2]
_DATA = ROOT / "python" / "weir.data"
_SCRIPTS = _DATA / "scripts"
_PAGES = _DATA / "data" / "share" / "doc" / "weir"
_PROFILE = os.environ.get("WEIR_PROFILE", "source")

# A wheel of the profile dev is installed where it is made: to compress 160 MB takes longer than to copy them.
_COMPRESSION = " --compression-method stored" if _PROFILE == "dev" else ""
os.environ.setdefault("MATURIN_PEP517_ARGS", f"--profile {_PROFILE}{_COMPRESSION}")

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]


def build_wheel(wheel_directory: str, config_settings: Any = None, metadata_directory: str | None = None) -> str:
    """Build the program, then the wheel."""
    _build_program()
    return str(maturin.build_wheel(wheel_directory, config_settings, metadata_directory))


def build_editable(wheel_directory: str, config_settings: Any = None, metadata_directory: str | None = None) -> str:
    """Build the program, then the wheel of an editable install."""
    _build_program()
    return str(maturin.build_editable(wheel_directory, config_settings, metadata_directory))


def build_sdist(sdist_directory: str, config_settings: Any = None) -> str:
    """Pack the sources; maturin wants the folder of the program, which is empty in a checkout."""
    shutil.rmtree(_DATA, ignore_errors=True)
    _SCRIPTS.mkdir(parents=True)
    return str(maturin.build_sdist(sdist_directory, config_settings))


def prepare_metadata_for_build_wheel(metadata_directory: str, config_settings: Any = None) -> str:
    """Write the wheel's metadata, for which maturin wants the folder of the program."""
    _forget_crates_of_tests()
    _SCRIPTS.mkdir(parents=True, exist_ok=True)
    return str(maturin.prepare_metadata_for_build_wheel(metadata_directory, config_settings))


prepare_metadata_for_build_editable = prepare_metadata_for_build_wheel


def _forget_crates_of_tests() -> None:
    """Take the crates from Cargo.lock that an sdist lacks, since only tests need them: `--locked` rejects them."""
    if (ROOT / "PKG-INFO").exists():
        command = ["cargo", "metadata", "--format-version", "1"]
        subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL, env=_with_cargo())


def _with_cargo() -> dict[str, str]:
    """Return the environment with a cargo: this machine's, or the one that maturin would fetch, too."""
    if shutil.which("cargo"):
        return dict(os.environ)
    if not find_spec("puccinialin"):
        sys.exit("weir is built by Rust's cargo, which is missing; install it from https://rustup.rs")
    return {**os.environ, **import_module("puccinialin").setup_rust()}


def _build_program() -> None:
    _forget_crates_of_tests()
    # Both packages are named, since for one alone dependencies have other features, and each would be compiled twice.
    packages = ["-p", "weir-cli", "-p", "weir-python"]
    command = ["cargo", "build", "--locked", "--profile", _PROFILE, *packages, "--bin", "weir"]
    subprocess.run(command, cwd=ROOT, check=True, env=_with_cargo())
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    _SCRIPTS.mkdir(parents=True, exist_ok=True)
    shutil.copy2(target / ("debug" if _PROFILE == "dev" else _PROFILE) / "weir", _SCRIPTS / "weir")
    copy_pages(_PAGES)
