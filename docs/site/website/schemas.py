"""Pages of JSON schemas: a table of properties for each object, and the schema itself to download."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from website.page import Page

_SPECIAL = re.compile(r"([\\*_\[\]<>|{}#~$])")


def names(root: Path) -> list[str]:
    """Names of the files with schemas."""
    return sorted(path.name for path in (root / "docs" / "schema").glob("*.schema.json"))


def pages(root: Path) -> Iterator[Page]:
    """Yield the page with the list of schemas, and the page of each."""
    rows = []
    for name in names(root):
        schema = json.loads((root / "docs" / "schema" / name).read_text("utf-8"))
        page = Page(f"schemas/{name.removesuffix('.schema.json')}", f"docs/schema/{name}", _text(name, schema))
        rows.append(f"| [{page.title}]({page.name}.md) | {_described(schema)} |")
        yield page
    head = "# JSON schemas\n\nReference of the JSON that weir writes and reads, by file.\n\n"
    yield Page("schemas", "", head + "| schema | content |\n|---|---|\n" + "\n".join(rows) + "\n")


def _text(name: str, schema: dict[str, Any]) -> str:
    title = f"JSON: {schema['title'].lower()}"
    objects = {inner for inner, definition in schema.get("$defs", {}).items() if "properties" in definition}
    parts = [
        f'# {title}\n\n{_described(schema)}\n\nThe schema (JSON Schema, 2020-12): <a href="../{name}">{name}</a>\n'
    ]
    if table := _table(schema, objects):
        parts.append(f"\n{table}")
    for inner, definition in schema.get("$defs", {}).items():
        parts.append(f"\n## {inner}\n\n{_described(definition) or _kind(definition, objects)}\n")
        if table := _table(definition, objects):
            parts.append(f"\n{table}")
    return "".join(parts)


def _table(schema: dict[str, Any], objects: set[str]) -> str:
    properties = _properties(schema)
    required = set(schema.get("required", ()))
    rows = []
    for name, of in properties:
        kind = _kind(of, objects) + ("" if name in required or "." in name else ", optional")
        rows.append(f"| `{name}` | {kind} | {_described(of)} |")
    return "| property | type | meaning |\n|---|---|---|\n" + "\n".join(rows) + "\n" if rows else ""


def _properties(schema: dict[str, Any], above: str = "") -> list[tuple[str, dict[str, Any]]]:
    """Properties, with those of objects that have no name of their own after a dot."""
    found: list[tuple[str, dict[str, Any]]] = []
    for name, of in schema.get("properties", {}).items():
        if not isinstance(of, dict):
            found.append((above + name, {}))
            continue
        found += [(above + name, of), *_properties(of, f"{above}{name}.")]
        items = of.get("items", {})
        found += _properties(items, f"{above}{name}[].") if isinstance(items, dict) else []
    return found


def _kind(schema: Any, objects: set[str]) -> str:
    """Type of a value, in words; `objects` have sections."""
    if not isinstance(schema, dict):
        return "any"
    if reference := schema.get("$ref"):
        inner = reference.rpartition("/")[2]
        return f"[{inner}](#{inner.lower()})" if inner in objects else inner
    if "const" in schema:
        return f"`{json.dumps(schema['const'])}`"
    if "enum" in schema:
        return " or ".join(f"`{json.dumps(value)}`" for value in schema["enum"])
    for several in ("anyOf", "oneOf"):
        if several in schema:
            return " or ".join(dict.fromkeys(_kind(inner, objects) for inner in schema[several]))
    kinds = schema.get("type", "any")
    return " or ".join(_simple(kind, schema, objects) for kind in ([kinds] if isinstance(kinds, str) else kinds))


def _simple(kind: str, schema: dict[str, Any], objects: set[str]) -> str:
    if kind == "array" and "items" in schema:
        return f"array of {_kind(schema['items'], objects)}"
    extra = schema.get("additionalProperties")
    if kind == "object" and isinstance(extra, dict):
        return f"object, by name: {_kind(extra, objects)}"
    return kind


def _described(schema: dict[str, Any]) -> str:
    """Description with code as it is, and other marks of Markdown escaped."""
    pieces = re.split(r"(`[^`]*`)", schema.get("description", ""))
    escaped = [piece if number % 2 else _SPECIAL.sub(r"\\\1", piece) for number, piece in enumerate(pieces)]
    return "".join(escaped).replace("\n", " ")
