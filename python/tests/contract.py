"""Names that scripts and dashboards of users depend on, one a line: the contract, kept in python/tests/contract.txt.

    python python/tests/contract.py > python/tests/contract.txt

Read from the installed command (flags, positional arguments, defaults, values), the schemas (JSON), the sources (TOML,
metrics, exit codes) and the installed package (Python). Texts, and layouts of reports for people, are not
part of it.
"""

from __future__ import annotations

import inspect
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import MISSING
from typing import Any

import naming
import programs
from naming import ROOT

from website.commands import parse

FILE = ROOT / "python" / "tests" / "contract.txt"

_FLAG = re.compile(r"^ {2,6}(?P<names>(?:-\w, )?--[a-z0-9-]+)(?P<value> ?[<\[][^ ].*?)?(?: {2,}(?P<text>.*))?$")
_SHORT_ONLY = re.compile(r"^ {2,6}(?P<names>-\w)(?P<value> ?<.*?>)?(?: {2,}(?P<text>.*))?$")
_EXIT = re.compile(r"^pub const ([A-Z]+): u8 = (\d+);$", re.M)


def lines() -> list[str]:
    """Return all names of the contract, in order, each with the part that it belongs to."""
    parts = [exit_codes(), flags(), json_fields(), toml_keys(), metrics(), python()]
    return [line for part in parts for line in sorted(set(part))]


def exit_codes() -> Iterator[str]:
    """Yield exit codes of the command."""
    text = (ROOT / "crates" / "base" / "command" / "src" / "exit.rs").read_text("utf-8")
    for name, code in _EXIT.findall(text):
        yield f"exit {int(code):>3} {name.lower()}"


# --- Flags


def flags() -> Iterator[str]:
    """Yield the usage and the flags of all commands, with what a flag takes."""
    pending: list[tuple[str, ...]] = [()]
    everywhere: set[str] = set()
    while pending:
        command = pending.pop()
        text = programs.finished(str(programs.binary()), *command, "--help").stdout
        # Flags of the command itself are those of all commands, and stand there alone.
        everywhere = everywhere or set(flags_of(text))
        path = " ".join(["weir", *command])
        usage = re.search(r"^Usage: (.+(?:\n +.+)*)", text, re.M)
        yield f"command {' '.join(usage[1].split()) if usage else path}"
        yield from (f"flag {path} {flag}" for flag in flags_of(text) if not command or flag not in everywhere)
        pending += [(*command, name) for name in parse(text).commands]


def flags_of(text: str) -> Iterator[str]:
    """Yield the flags of a help: names, value, default and possible values."""
    entries: list[tuple[str, list[str]]] = []
    is_flag = False
    # Flags come before the examples, but those of the program.
    for line in (text if "\nMeasure:" in text else text.partition("\nExamples:\n")[0]).splitlines():
        if found := _FLAG.match(line) or _SHORT_ONLY.match(line):
            entries.append((f"{found['names']}{found['value'] or ''}", [found["text"] or ""]))
            is_flag = True
        elif line and not line.startswith(" " * 7):
            is_flag = False
        elif is_flag:
            entries[-1][1].append(line.strip())
    for head, texts in entries:
        whole = " ".join(" ".join(texts).split())
        listed = re.findall(r"^- ([\w-]+)(?::|$)", "\n".join(texts), re.M)
        if values := re.search(r"\[possible values: ([^\]]+)\]", whole):
            listed = values[1].split(", ")
        default = re.search(r"\[default: ([^\]]+)\]", whole)
        taken = f" {{{', '.join(listed)}}}" if listed else ""
        yield f"{head}{taken}{f' = {default[1]}' if default else ''}"


# --- JSON


def json_fields() -> Iterator[str]:
    """Yield the fields of all JSON that weir writes and reads, with their types; `?` for one that may be absent."""
    for path in sorted((ROOT / "docs" / "schema").glob("*.schema.json")):
        if path.name == "order.schema.json":
            continue  # a shop's order, as a test body
        schema = json.loads(path.read_text("utf-8"))
        name = path.name.removesuffix(".schema.json")
        yield from (f"json {name} {field}" for field in _fields(schema, ""))
        for part, inner in schema.get("$defs", {}).items():
            yield from (f"json {name} {field}" for field in _fields(inner, f"#{part}"))


def _fields(schema: Any, path: str) -> Iterator[str]:
    if not isinstance(schema, dict):
        return
    required = set(schema.get("required", ()))
    for name, inner in schema.get("properties", {}).items():
        place = f"{path}.{name}".lstrip(".")
        yield f"{place}{'' if name in required else '?'}: {_type(inner)}"
        yield from _fields(inner, place)
    for keyword, suffix in (("items", "[]"), ("additionalProperties", ".*")):
        yield from _fields(schema.get(keyword), f"{path}{suffix}")
    for keyword in ("oneOf", "anyOf", "allOf", "prefixItems"):
        for inner in schema.get(keyword, ()):
            yield from _fields(inner, path)


def _type(schema: Any) -> str:
    if not isinstance(schema, dict):
        return "any"
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "const" in schema:
        return json.dumps(schema["const"])
    if "enum" in schema:
        return " | ".join(json.dumps(value) for value in schema["enum"])
    for keyword in ("oneOf", "anyOf"):
        if keyword in schema:
            return " | ".join(dict.fromkeys(_type(inner) for inner in schema[keyword]))
    kind = schema.get("type", "any")
    kinds = kind if isinstance(kind, list) else [kind]
    return " | ".join(f"{_type(schema['items'])}[]" if one == "array" and "items" in schema else one for one in kinds)


# --- TOML, metrics


def toml_keys() -> Iterator[str]:
    """Yield the keys of configurations of the gateway and of studies, by the file of their reader."""
    for key, place in naming.toml_keys():
        parts = place.split("/")
        yield f"toml {parts[2]} {parts[-1].removesuffix('.rs')} {key}"


_NAMED = re.compile(
    r'(?:encode_descriptor\(|MetricType::\w+,|registry\.register\w*\(|metric\(\s*\[)\s*"(?P<name>[a-z]\w*)"'
    r'|^ +\("(?P<listed>[a-z]+(?:_[a-z]+)+)", "[A-Z]',
    re.M,
)

_LABEL = re.compile(r'\(\s*"([a-z][a-z0-9_]*)"\s*,\s*(?![\s"])')
_LABELS = re.compile(r'&\[("[a-z_", ]+)\]')


def metrics() -> Iterator[str]:
    """Yield metrics and labels as sources have them; where they are scraped, counters end with `_total`."""
    for path in sorted(ROOT.glob("crates/**/src/**/*.rs")):
        text = path.read_text("utf-8")
        if not re.search(r"encode_descriptor|MetricType|registry\.register|: MetricInfo", text):
            continue
        for found in _NAMED.finditer(text):
            name = found["name"] or found["listed"]
            yield f"metric {name if name.startswith('weir_') else f'weir_{name}'}"
        if path.name == "metrics.rs":
            labels = [*_LABEL.findall(text), *re.findall(r"\w+", " ".join(_LABELS.findall(text)))]
            yield from (f"label {path.relative_to(ROOT).parts[2]} {label}" for label in labels)


# --- Python

_KINDS: dict[Any, str] = {
    inspect.Parameter.KEYWORD_ONLY: "*, ",
    inspect.Parameter.VAR_POSITIONAL: "*",
    inspect.Parameter.VAR_KEYWORD: "**",
}
"""What stands before a parameter that is not an ordinary one."""


def python() -> Iterator[str]:
    """Yield the public names of the package: parameters, attributes, and signatures of methods."""
    import weir  # noqa: PLC0415  the other names need no build

    for name in weir.__all__:
        value = getattr(weir, name)
        if inspect.isclass(value):
            bases = ", ".join(base.__name__ for base in value.__bases__ if base is not object)
            yield f"python weir.{name}({bases})"
            yield from (f"python weir.{name}.{member}" for member in _members(value))
        elif inspect.isfunction(value):
            yield from (f"python weir.{name} {parameter}" for parameter in _parameters(value))
        elif name != "__version__":
            yield f"python weir.{name}"


def _members(kind: type) -> Iterator[str]:
    for owner in kind.__mro__:
        if not owner.__module__.startswith("weir"):
            continue
        fields = vars(owner).get("__dataclass_fields__", {})
        for name in inspect.get_annotations(owner):
            has_default = name in fields and fields[name].default is not MISSING
            if name[0] != "_":
                yield f"{name}={_default(fields[name].default)}" if has_default else name
        for name, member in vars(owner).items():
            function = getattr(member, "__func__", member)
            # Parameters of data classes are their attributes.
            if name in fields or (name == "__init__" and fields) or (name != "__init__" and name[0] == "_"):
                continue
            if inspect.isfunction(function):
                yield from (f"{name} {parameter}" for parameter in _parameters(function))
            if name != "__init__":
                yield name


def _parameters(function: Any) -> Iterator[str]:
    """Yield parameters with their kind and default, as they are written."""
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name in {"self", "cls"} or parameter.name[0] == "_":
            continue
        default = "" if parameter.default is inspect.Parameter.empty else f"={_default(parameter.default)}"
        yield f"{_KINDS.get(parameter.kind, '')}{parameter.name}{default}"


def _default(value: object) -> str:
    """Write a default; objects without a text of their own have an address in it."""
    text = repr(value)
    return type(value).__name__ if " at 0x" in text else text


if __name__ == "__main__":
    sys.stdout.write("".join(f"{line}\n" for line in lines()))
