"""Uses of parts of gevent and Locust that are not there or do less, found in the source before the run."""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from weir._locust.environment import Environment, Runner

__all__ = ["absent_parts"]

_STAND_INS = ("gevent", "locust")
_FIRE = "events.request.fire"
_SOCKETS = "use self.client.websocket(url) of an HttpUser"
_BLOCKING = {
    "grpc": "use self.grpc() of a class of weir.User",
    "socketio": _SOCKETS,
    "websocket": _SOCKETS,
    "websockets": _SOCKETS,
}
"""Packages of clients that wait for a socket by themselves, with what to use in place of them."""


def absent_parts(module: ModuleType, path: str) -> list[str]:
    """Say of each part that a locustfile and modules beside it use what is lacking, once and with its line."""
    found: dict[str, str] = {}
    files = _files(module, path)
    for file in files:
        try:
            tree = ast.parse(Path(file).read_bytes())
        except (OSError, SyntaxError, ValueError):
            continue
        shown = path if file == os.path.abspath(path) else file
        for name, line in _uses(tree):
            found.setdefault(name, f"{shown}:{line}: {name} {_lack(name)}")
        for name, line in _blocking(tree, files):
            found.setdefault(name, f"{shown}:{line}: {name} blocks the other users while it waits; {_BLOCKING[name]}")
    return list(found.values())


def _lack(name: str) -> str:
    return "is heard by listeners, and not counted" if name == _FIRE else "is not there; what reaches it fails"


def _blocking(tree: ast.Module, own_files: list[str]) -> Iterator[tuple[str, int]]:
    """Iterate over imports of clients that wait without the other users; a module beside the file is another one."""
    for node in _reached(tree):
        if isinstance(node, ast.Import):
            names = [one.name for one in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [node.module]
        else:
            continue
        for root in (name.partition(".")[0] for name in names):
            if root in _BLOCKING and getattr(sys.modules.get(root), "__file__", None) not in own_files:
                yield root, getattr(node, "lineno", 0)


def _files(module: ModuleType, path: str) -> list[str]:
    folder = os.path.dirname(os.path.abspath(path)) + os.sep
    files = [getattr(one, "__file__", None) for one in (module, *sys.modules.values())]
    own = [one for one in files if one and one.endswith(".py") and one.startswith(folder)]
    return list(dict.fromkeys(one for one in own if "site-packages" not in one))


def _uses(tree: ast.Module) -> Iterator[tuple[str, int]]:
    names: dict[str, str] = {}
    nodes = list(_reached(tree))
    for node in nodes:
        if isinstance(node, ast.Import):
            names.update({(one.asname or one.name.partition(".")[0]): _bound(one) for one in node.names})
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.update({one.asname or one.name: f"{node.module}.{one.name}" for one in node.names})
    for node in nodes:
        if isinstance(node, ast.ImportFrom | ast.Import):
            prefix = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
            dotted = [prefix + one.name for one in node.names if one.name != "*"]
        else:
            name = _dotted(node, names)
            dotted = [name] if name else []
        yield from ((name, getattr(node, "lineno", 0)) for name in dotted if _is_absent(name))


def _bound(one: ast.alias) -> str:
    return one.name if one.asname else one.name.partition(".")[0]


def _reached(node: ast.AST) -> Iterator[ast.AST]:
    """Iterate over a tree without what only a program of its own does, and what catches that a module is not there."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "__name__" in ast.dump(child.test):
            continue
        if isinstance(child, ast.Try) and any(_catches_imports(handler) for handler in child.handlers):
            continue
        yield child
        yield from _reached(child)


def _catches_imports(handler: ast.ExceptHandler) -> bool:
    return handler.type is not None and any(name in ast.dump(handler.type) for name in ("Import", "ModuleNotFound"))


def _dotted(node: ast.AST, names: dict[str, str]) -> str | None:
    """Return the name of an attribute of gevent or Locust, or of the runner."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.insert(0, node.attr)
        node = node.value
    if not parts or not isinstance(node, ast.Name):
        return None
    if ".".join((node.id, *parts)).endswith(_FIRE):
        return _FIRE
    root = names.get(node.id)
    if root is not None:
        return ".".join((root, *parts)) if root.partition(".")[0] in _STAND_INS else None
    chain = [node.id, *parts]
    for at in range(len(chain) - 2):
        if chain[at] == "environment" and chain[at + 1] == "runner":
            return f"environment.runner.{chain[at + 2]}"
    return None


def _is_absent(name: str) -> bool:
    if name == _FIRE:
        return True
    if name.startswith("environment.runner."):
        return not hasattr(Runner, name.split(".")[2]) and name.split(".")[2] not in vars(Runner(Environment()))
    top, *rest = name.split(".")
    if top not in _STAND_INS:
        return False
    part: Any = sys.modules[top]
    for one in rest:
        if not isinstance(part, ModuleType):
            return False
        if one not in vars(part):
            return True
        part = vars(part)[one]
    return False
