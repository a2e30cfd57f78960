"""Names that users see (flags, TOML keys, JSON keys, metrics, Python), and their words; used by test_words.py."""

from __future__ import annotations

import inspect
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import programs

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs" / "site"))

from website.commands import parse  # noqa: E402  the site reads the helps, too

Name = tuple[str, str]
"""A name, and the place that it is from."""

_TOML_KEY = re.compile(r'\.get\(\s*"([a-z][a-z0-9_]*)"\s*\)')
_METRIC = re.compile(r'(?:MetricType::\w+,|register\w*\(|metric\(\s*\[)\s*"([a-z][a-z0-9_]*)"')
_LABEL = re.compile(r'\(\s*"([a-z][a-z0-9_]*)"\s*,')
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def words_of(name: str) -> list[str]:
    """Split a name at case, `-`, `_` and digits: `min_per_s`, `JobResult`, `p99`."""
    return [word.lower() for word in _WORD.findall(name)]


def glossary() -> set[str]:
    """Words of the first column of docs/glossary.md, and of the identifiers in its tables."""
    found: set[str] = set()
    for line in (ROOT / "docs" / "glossary.md").read_text("utf-8").splitlines():
        cells = line.split("|")
        if len(cells) < 4:
            continue
        identifiers = re.findall(r"`([^`]+)`", line)
        found |= {word for text in [cells[1], *identifiers] for word in words_of(text)}
    return found


def flags() -> Iterator[Name]:
    """Yield the flags of all commands."""
    pending: list[tuple[str, ...]] = [()]
    while pending:
        command = pending.pop()
        text = programs.finished(str(programs.binary()), *command, "--help").stdout
        yield from (
            (flag, " ".join(["weir", *command])) for flag in re.findall(r"^ +(?:-\w, )?--([a-z-]+)", text, re.M)
        )
        pending += [(*command, name) for name in parse(text).commands]


def toml_keys() -> Iterator[Name]:
    """Yield the keys that the readers of configurations and studies take."""
    for folder in ("crates/gate/gate/src/config", "crates/lab/study/src/file"):
        for path in sorted((ROOT / folder).rglob("*.rs")):
            yield from ((key, str(path.relative_to(ROOT))) for key in _TOML_KEY.findall(path.read_text("utf-8")))


def json_keys() -> Iterator[Name]:
    """Yield the properties of all schemas."""
    for path in sorted((ROOT / "docs" / "schema").glob("*.schema.json")):
        if path.name == "order.schema.json":
            continue  # a shop's order, as a test body
        yield from ((key, path.name) for key in _properties(json.loads(path.read_text("utf-8"))))


def _properties(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        for keyword, value in schema.items():
            if keyword in {"properties", "$defs"}:
                yield from value
                yield from (name for inner in value.values() for name in _properties(inner))
            else:
                yield from _properties(value)
    elif isinstance(schema, list):
        yield from (name for item in schema for name in _properties(item))


def metrics() -> Iterator[Name]:
    """Yield the names and labels of metrics."""
    for path in sorted(ROOT.glob("crates/**/src/**/*.rs")):
        text = path.read_text("utf-8")
        found = _METRIC.findall(text)
        labels = _LABEL.findall(text) if found and path.name == "metrics.rs" else []
        yield from ((name, str(path.relative_to(ROOT))) for name in [*found, *labels])


def python_names() -> Iterator[Name]:
    """Yield the exported names of the package, their parameters and attributes."""
    import weir  # noqa: PLC0415  the other names need no build
    from weir import pytest_plugin  # noqa: PLC0415

    for name in weir.__all__:
        if name == "__version__":
            continue
        yield name, "weir"
        value = getattr(weir, name)
        if inspect.isclass(value):
            yield from ((member, f"weir.{name}") for member in _members(value))
        elif inspect.isfunction(value):
            yield from ((parameter, f"weir.{name}") for parameter in inspect.signature(value).parameters)
    call = inspect.signature(pytest_plugin.WeirLoad.__call__)
    yield from ((parameter, "weir_load") for parameter in call.parameters if parameter != "self")
    yield from ((option, "pytest --weir") for option in pytest_plugin.OPTIONS)


def _members(kind: type) -> Iterator[str]:
    """Yield public attributes, methods and their parameters, of a class and its bases in this package."""
    for owner in kind.__mro__:
        if not owner.__module__.startswith("weir"):
            continue
        yield from (name for name in vars(owner).get("__annotations__", {}) if name[0] != "_")
        for name, member in vars(owner).items():
            function = getattr(member, "__func__", member)
            if name[0] != "_":
                yield name
            if inspect.isfunction(function) and (name == "__init__" or name[0] != "_"):
                parameters = inspect.signature(function).parameters
                yield from (name for name in parameters if name[0] != "_" and name not in {"self", "cls"})
