"""Names of k6: those of its types, those that weir's modules export, and the page that has both.

``python python/tests/k6_names.py > docs/scripts/k6-names.md`` writes the page anew.
"""

import json
import sys
import tempfile
from pathlib import Path
from typing import TypedDict

from naming import ROOT
from programs import binary, finished

PAGE = ROOT / "docs" / "scripts" / "k6-names.md"
TYPES = ROOT / ".venv" / "k6-types" / "node_modules" / "@types" / "k6"
TYPESCRIPT = ROOT / ".venv" / "typescript" / "node_modules" / "typescript"

GLOBALS = [
    *("__ENV", "__ITER", "__VU", "clearInterval", "clearTimeout", "console", "crypto", "global", "open"),
    *("setInterval", "setTimeout"),
]

# Modules that only TypeScript imports.
TYPES_ALONE = "k6/options"

# Functions that are there, and reject each call.
REJECTED = {
    ("k6/crypto", "md4"): "the hash is broken, and no library that weir has computes it",
    ("k6/crypto", "ripemd160"): "no library that weir has computes it",
}

SCRIPT = """
const names = {};
for (const name of MODULES) {
  try {
    const module = await import(name);
    names[name] = Object.keys(module).filter((one) => one !== 'default');
    const missing = module.default ? names[name].filter((one) => !(one in module.default)) : [];
    if (missing.length > 0 && typeof module.default === 'object') names[`${name} default`] = missing;
  } catch (error) {
    names[name] = error.message;
  }
}
names.globals = GLOBALS.filter((name) => typeof globalThis[name] !== 'undefined');
export default () => console.log(`NAMES ${JSON.stringify(names)}`);
"""

HEAD = """# Names of k6

Reference for scripts of k6: each name that a module of k6 exports, by [`@types/k6`](https://www.npmjs.com/package/@types/k6)
{version}, and whether weir has it. A test writes this page from the types and from what weir's modules export.

## Names that work

| module | names | types alone |
|---|---|---|
"""

REST = """
Globals:
{globals},
and `import.meta.resolve()`. A name under "types alone" is an abstract class or an interface: functions of the module
return such objects.

## Names that are rejected

An import of such a module ends the run before it begins; a call of such a function ends the iteration. Both print one
line with the name.

| name | reason |
|---|---|
"""


class ModuleNames(TypedDict):
    """Names of a module of the types."""

    values: list[str]
    types: list[str]
    members: dict[str, list[str]]


CALLS = "k6/net/grpc"
"""Module that does not go with the others of the network."""


def are_there() -> bool:
    """Whether the types and their compiler are installed."""
    return TYPES.exists() and TYPESCRIPT.exists()


def typed() -> dict[str, ModuleNames]:
    """Names of the types, by modules."""
    done = finished("node", str(Path(__file__).with_suffix(".mjs")), str(TYPESCRIPT), str(TYPES))
    assert done.returncode == 0, done.stderr
    modules: dict[str, ModuleNames] = json.loads(done.stdout)
    return modules


def exported(modules: list[str]) -> dict[str, list[str] | str]:
    """Names that each module of weir exports, or why it is rejected; and under ``globals`` those of all scripts."""
    # A script has calls of gRPC, or requests and messages.
    calls = [name for name in modules if name == CALLS]
    names: dict[str, list[str] | str] = {}
    for some in [calls, [name for name in modules if name != CALLS]]:
        names |= _exported(some)
    return names


def _exported(modules: list[str]) -> dict[str, list[str] | str]:
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "names.js"
        script.write_text(f"const MODULES = {json.dumps(modules)};\nconst GLOBALS = {json.dumps(GLOBALS)};\n{SCRIPT}")
        done = finished(str(binary()), "load", "-q", "-s", str(script), "-n", "1", "-c", "1")
    lines = [line for line in done.stderr.splitlines() if line.startswith("NAMES ")]
    assert lines, done.stderr
    found: dict[str, list[str] | str] = json.loads(lines[0].removeprefix("NAMES "))
    return found


def page(types: dict[str, ModuleNames], own: dict[str, list[str] | str]) -> str:
    """Text of the page."""
    version = json.loads((TYPES / "package.json").read_text("utf-8"))["version"]
    text = HEAD.format(version=version)
    rejected = []
    for module, names in types.items():
        exports = own[module]
        if isinstance(exports, str) and module != TYPES_ALONE:
            rejected.append((f"`{module}`", exports.partition(": ")[2] or exports))
            continue
        works = [name for name in names["values"] if name in exports and (module, name) not in REJECTED]
        text += f"| `{module}` | {_listed(works)} | {_listed(names['types'])} |\n"
        for name in sorted(set(names["values"]) - set(works)):
            rejected.append((f"`{name}` of `{module}`", REJECTED.get((module, name), "**missing**")))
    text += REST.format(globals=_listed(list(own["globals"])))
    return text + "".join(f"| {name} | {reason} |\n" for name, reason in rejected)


def _listed(names: list[str]) -> str:
    return " ".join(f"`{name}`" for name in names)


if __name__ == "__main__":
    found = typed()
    sys.stdout.write(page(found, exported(list(found))))
