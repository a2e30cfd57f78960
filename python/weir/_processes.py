"""Processes of a load whose users Python drives: what they import."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

from weir._errors import UsageError

__all__: list[str] = []

LAUNCHER = [sys.executable, "-c", "from weir._script import main; main()"]
"""Command of a process, without its subcommand."""


class _State:
    is_agent = False


def become_agent() -> None:
    """Prepare this process for a part of a load: its stdin and stdout belong to the one that started it."""
    _State.is_agent = True
    sys.breakpointhook = _no_breakpoint
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(line_buffering=True)


def is_agent() -> bool:
    """Whether this process drives a part of a load."""
    return _State.is_agent


def _no_breakpoint(*_: object, **__: object) -> None:
    raise RuntimeError("breakpoint() needs a load in one process; leave out processes and agents")


def script_of(classes: Sequence[type], host: str) -> dict[str, object]:
    """Return what other processes need to import classes.

    Raises:
        UsageError: They cannot be imported from a file.
    """
    # The program itself is imported by its file, modules by their names.
    paths = [_path_of(one) for one in sorted(classes, key=lambda one: one.__module__ != "__main__")]
    return {
        "path": paths[0],
        "scenarios": [one.__name__ for one in classes],
        "url": host,
        "classes": [f"{one.__module__}:{one.__qualname__}" for one in classes],
        "folders": [folder or os.getcwd() for folder in sys.path],
        "env": [],
        "variables": [],
        "data": None,
    }


def _path_of(one: type) -> str:
    """Return the file of a class."""
    name = one.__name__
    module = sys.modules.get(one.__module__)
    path: str | None = getattr(module, "__file__", None)
    if path is None or not os.path.isfile(path):
        raise UsageError(f"processes: {name} is not in a file, so that other processes cannot import it")
    found: Any = module
    for part in one.__qualname__.split("."):
        found = getattr(found, part, None)
    if found is not one:
        raise UsageError(f"processes: other processes cannot import {name}; write the class at the top of its file")
    return os.path.abspath(path)


def import_classes(
    path: str, names: Sequence[str], folders: Sequence[str], load_module: Callable[[str], Any]
) -> list[type]:
    """Import classes by `module:name`; those of the program itself from its file, by `load_module`."""
    sys.path[:0] = [folder for folder in folders if folder not in sys.path]
    modules: dict[str, Any] = {}
    found = []
    for full_name in names:
        module_name, _, name = full_name.partition(":")
        if module_name not in modules:
            is_program = module_name == "__main__"
            modules[module_name] = load_module(path) if is_program else importlib.import_module(module_name)
        one: Any = modules[module_name]
        for part in name.split("."):
            one = getattr(one, part, None)
        if not isinstance(one, type):
            raise UsageError(f"processes: {path} has no class {name} when another process imports it")
        found.append(one)
    return found
