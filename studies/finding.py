"""Write the README.md of a study, from its finding.md.j2 and the files in its results/.

    python studies/finding.py NAME... [--check]

A template has the text; every number comes from a file, so that another run of a study updates its finding.
`--check` reports where README.md differs from the rendered template, and where a number was typed by hand. A template
may use:

- each `results/STEM.json` as STEM, and each `STEM.toml` as `setup.STEM`
- `at(summary, "VARIANT", PARAMETER=VALUE)`: a record of `summary.py`, as in `at(...).loads.NAME.p99_ms`
- `verdict(summary, "BASE", "OTHER", "METRIC", load=..., PARAMETER=VALUE)`
- `plot("STEM", "what it shows")`, `table(header, rows)`, `method(summary)`, `again(summary)`
- filters: `number`, `count`, `per_second`, `share`, `ms`, `us`, `mib`, `ratio`; `interval("ms")`, `spread("ms")`
- `said("37.9/s")`, or a block `{% call said() %}`: figures of other reports, and the only place for typed numbers
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jinja2
from jinja2 import nodes

from words import UNITS, Spread, count, interval, ms, spread, table

if sys.version_info >= (3, 11):
    import tomllib
else:
    from pip._vendor import tomli as tomllib

STUDIES = Path(__file__).parent
TEMPLATE = "finding.md.j2"
Object = dict[str, Any]


def main() -> int:
    """Write, or check, the named findings."""
    parser = argparse.ArgumentParser(description="Write the findings of studies.")
    parser.add_argument("names", nargs="+", metavar="NAME")
    parser.add_argument("--check", action="store_true", help="write nothing; print errors")
    parser.add_argument("--results", type=Path, help="take the results from here, and print the finding")
    args = parser.parse_args()
    wrong: list[str] = []
    for name in args.names:
        folder = STUDIES / name
        if args.check:
            wrong += check(folder)
        elif args.results:
            print(render(folder, args.results))
        else:
            (folder / "README.md").write_text(render(folder))
    print("\n".join(wrong), end="\n" if wrong else "", file=sys.stderr)
    return 1 if wrong else 0


def render(folder: Path, results: Path | None = None) -> str:
    """Render the finding of the study in this folder."""
    template = _environment().from_string((folder / TEMPLATE).read_text())
    return template.render(_context(folder, results or folder / "results")).strip() + "\n"


def check(folder: Path) -> list[str]:
    """Return the differences between a finding and its files, a line each."""
    wrong = [f"{folder.name}/{TEMPLATE}:{line}" for line in typed((folder / TEMPLATE).read_text())]
    readme = folder / "README.md"
    if not readme.exists() or readme.read_text() != render(folder):
        wrong.append(
            f"{folder.name}/README.md is not up to date with its results; run: python studies/finding.py {folder.name}"
        )
    return wrong


# --- Names for templates


def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        extensions=["jinja2.ext.do"],
    )
    environment.filters.update(UNITS)
    environment.filters.update(interval=interval, spread=spread)
    return environment


def _context(folder: Path, results: Path) -> Object:
    def plot(stem: str, words: str) -> str:
        if not (results / f"{stem}.svg").exists():
            raise ValueError(f"{results} has no {stem}.svg")
        return f"![{words}](results/{stem}.svg)"

    def again(summary: Object) -> str:
        took = f"about {count(max(summary['duration_s'] / 60, 1))} minutes"
        command = f"$ python studies/run.py {folder.name}"
        quick = f"{command} --quick    # whether it works: about a minute"
        return f"```console\n{command}            # {took}\n{quick}\n```"

    files = {path.stem.replace("-", "_"): _json(path) for path in sorted(results.glob("*.json"))}
    setup = {path.stem.replace("-", "_"): tomllib.loads(path.read_text()) for path in sorted(folder.glob("*.toml"))}
    functions: dict[str, Callable[..., object]] = {
        "plot": plot,
        "again": again,
        "at": at,
        "verdict": verdict,
        "method": method,
        "table": table,
        "said": said,
    }
    return {**files, **functions, "setup": setup}


def at(summary: Object, variant: str, **point: object) -> Object:
    """Return the measurements of a variant at the one point with these values."""
    return _only(summary["measurements"], point, variant=variant)


def verdict(summary: Object, base: str, other: str, metric: str, load: str | None = None, **point: object) -> Object:
    """Return the verdict on another variant, compared with a baseline."""
    return _only(summary["verdicts"], point, base=base, other=other, metric=metric, load=load)


def _only(records: list[Object], point: Object, **members: object) -> Object:
    of_point = {key: str(value) for key, value in point.items()}
    found = [
        record
        for record in records
        if of_point.items() <= record["point"].items()
        and all(record[key] == value for key, value in members.items() if value is not None)
    ]
    if len(found) != 1:
        raise ValueError(f"expected one record with {members} at {point}, found {len(found)}")
    return found[0]


def said(words: str = "", caller: Callable[[], str] | None = None) -> str:
    """Mark text as a quotation of another report."""
    return caller() if caller else words


def method(summary: Object) -> str:
    """Describe the method of a study, in the text that all findings share."""
    machine = summary["machine"]
    words = (
        f"Measured on {summary['date']} with weir {summary['weir']} on {machine['cores']} cores of {machine['cpu']} "
        f"with {machine['memory_mib'] / 1024:.1f} GiB ({machine['os']}), "
        f"in {count(summary['duration_s'] / 60)} minutes. "
        f"{summary['rounds']} rounds; in each of them every combination was measured once, in random order, "
        f"with everything restarted. Tables show the median of the rounds and, in brackets, the lowest and highest."
    )
    if summary["warmup_s"]:
        longest = ms(summary["warmup_s"] * 1000)
        words += f" Before each measurement the load ran until the service was steady, for {longest} at most."
    return " ".join([words, *(limitation.replace("; see below", "") for limitation in summary["limitations"])])


def _json(path: Path) -> Any:
    return _spreads(json.loads(path.read_text()))


def _spreads(value: Any) -> Any:
    """Replace lists of three numbers by spreads: median, lowest, highest."""
    if isinstance(value, dict):
        return {key: _spreads(of) for key, of in value.items()}
    if isinstance(value, list):
        numbers = len(value) == 3 and all(isinstance(of, int | float) for of in value)
        return Spread(value) if numbers else [_spreads(of) for of in value]
    return value


# --- Numbers typed by hand

# Digits in names (`p99`, `HTTP/2`), ordinals and code are not results; numbers with a unit always are.
BARE = re.compile(r"(?<![A-Za-z0-9_])\d(?!\d*(?:st|nd|rd|th)\b)[\d.,]*")
WITH_UNIT = re.compile(r"\d ?(?:%|/s\b|ms\b|us\b|s\b|MiB\b|GiB\b|GB\b|MB\b)")
CODE = re.compile(r"```.*?```|`[^`]*`|\]\([^)]*\)", re.DOTALL)


def typed(source: str) -> Iterator[str]:
    """Yield the numbers in the text of a template: line, number and remedy of each."""
    remedy = "take it from a file, or mark it as said()"
    text = _text(source)
    for code in CODE.finditer(text):
        for found in WITH_UNIT.finditer(code[0]):
            yield f"{1 + text.count(chr(10), 0, code.start() + found.start())}: {found[0]} was typed by hand; {remedy}"
    blanked = CODE.sub(lambda code: re.sub(r"[^\n]", " ", code[0]), text)
    for found in BARE.finditer(blanked):
        yield f"{1 + blanked.count(chr(10), 0, found.start())}: {found[0]} was typed by hand; {remedy}"
    parsed = _environment().parse(source)
    shown: list[nodes.Node] = [of for node in parsed.find_all(nodes.Output) for of in node.nodes]
    shown += [node.node for node in parsed.find_all(nodes.Assign)]
    shown += [node.iter for node in parsed.find_all(nodes.For)]
    for const in (const for of in shown for const in _shown(of)):
        if BARE.search(str(const.value)):
            yield f"{const.lineno}: {const.value!r} was typed by hand; {remedy}"


def _text(source: str) -> str:
    """Blank everything but text in the source: expressions, statements, comments, and quotations."""
    text, inside, words = "", False, ""
    for _, kind, value in _environment().lex(source):
        words = "" if kind == "block_begin" else words + value
        is_text = kind == "data" and not inside
        text += value if is_text else re.sub(r"[^\n]", " ", value)
        if kind == "block_end":
            statement = "".join(words.split()).strip("-%}")
            inside = statement.startswith("callsaid(") or (inside and statement != "endcall")
    return text


def _shown(node: nodes.Node) -> Iterator[nodes.Const]:
    """Yield the constants that an expression prints, rather than uses for a lookup."""
    match node:
        case nodes.Const():
            yield node
        case nodes.Call(node=nodes.Name(name="said")):
            return
        case nodes.Call(node=nodes.Name(name="table" | "plot")) | nodes.Call(node=nodes.Getattr(attr="append")):
            for argument in node.args:
                yield from _shown(argument)
        case nodes.Filter(node=nodes.Node() as inner):
            yield from _shown(inner)
        case nodes.BinExpr() if node.find(nodes.Name):
            # A number in an expression with data is arithmetic.
            yield from (const for const in node.find_all(nodes.Const) if isinstance(const.value, str))
        case nodes.List() | nodes.Tuple() | nodes.Concat() | nodes.BinExpr() | nodes.CondExpr():
            skipped = node.test if isinstance(node, nodes.CondExpr) else None
            for of in node.iter_child_nodes():
                if of is not skipped:
                    yield from _shown(of)
        case _:
            return


if __name__ == "__main__":
    sys.exit(main())
