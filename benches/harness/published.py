"""Published benchmarks: a page for each section, their list with a summary, and the figures in README.md.

    python benches/harness/published.py [--check]

List, summary and README are written from the pages alone, so another measurement of a section changes nothing else.
`--check` writes nothing; it exits with 1 and prints the files that are not up to date with the pages.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = DOCS / "benchmarks"
LIST = DOCS / "benchmarks.md"
README = ROOT / "README.md"
#: Template of the summary in docs/benchmarks.md.
SUMMARY = ROOT / "benches" / "summary.md.j2"
#: Templates of the generated parts of README.md, which stand between a line `begin` and a line `end` of their name.
PARTS = {"truth": ROOT / "benches" / "readme-truth.md.j2", "figures": ROOT / "benches" / "readme.md.j2"}

#: Order of the list.
ORDER = (
    "closed", "open", "truth", "memory", "scenario", "scripts", "http2", "grpc", "streams", "websocket", "llm",
    "traces", "watched", "serve", "gate", "client", "smart", "overload", "harm", "send", "delivery", "limiter",
    "shared", "verdicts", "agents",
)  # fmt: skip

INTRODUCTION = """\
# Benchmarks

What weir costs and how exact it is, beside other tools, for anyone who wants to check the figures. Each page below is
written by `python benches/run.py SECTION --publish`, with its tables, warnings, goals and command lines; `make bench`
measures on your machine. Everything ran over the loopback of one machine at a time; other machines differ, most of
all in the cost of a wake-up.
"""

METHOD = """\
## Method

Server and generator have a core each. `lean` is the server in `benches/lean`, which sends a constant response and
counts requests; nginx has one worker and returns a constant of the same 38 bytes. Requests are counted by the server,
never by the generator. CPU per request is user and system time of the generator's process, start-up included, divided
by those requests. Contenders run interleaved: each one once per round, in a new random order each round. Tables show
medians over the rounds; a ratio is the median of the ratios within each round. The machine drifts from minute to
minute, so ratios are what to quote. `floor` is the loop in `benches/floor.rs`: it writes a fixed request and counts
bytes, and measures nothing. † marks a contender with runs that weir itself does not trust; the page gives the reasons
below its tables.

`make soak` is neither measured here nor a part of `make test`: agents on a Ray cluster of several nodes, and a minute
of fuzzing per target.
"""


@dataclass(frozen=True)
class Page:
    """Published page."""

    name: str
    text: str

    @property
    def title(self) -> str:
        """First heading."""
        return self.text.split("\n", 1)[0].removeprefix("# ")

    def rows(self, heading: str, *, table: int = 0) -> list[dict[str, str]]:
        """Return the rows of a table below a heading, also the title, by column; `table` counts from 0.

        Of columns with the same name each has that of the column before it, too: "TTFT p50 record".
        """
        below = re.split(rf"(?m)^#+ {re.escape(heading)}$", self.text, maxsplit=1)
        if len(below) != 2:
            raise LookupError(f"{self.name}: no heading {heading!r}")
        tables = re.findall(r"(?m)(?:^\|.*\n)+", re.split(r"(?m)^#", below[1], maxsplit=1)[0] + "\n")
        if len(tables) <= table:
            raise LookupError(f"{self.name}: no table {table} below {heading!r}")
        header, _, *lines = ([cell.strip() for cell in line[1:-1].split("|")] for line in tables[table].splitlines())
        names = [f"{header[at - 1]} {name}" if header.count(name) > 1 else name for at, name in enumerate(header)]
        return [dict(zip(names, line, strict=True)) for line in lines]

    def cell(self, heading: str, row: str, column: str, *, table: int = 0) -> str:
        """Return a cell of the row that begins with `row`: one cell, or two joined by ` / `, without marks."""
        for found in self.rows(heading, table=table):
            cells = [value.removesuffix(" †") for value in found.values()]
            if row in (" / ".join(cells[:count]) for count in (1, 2)):
                return found[column]
        raise LookupError(f"{self.name}: no row {row!r} below {heading!r}")

    def has(self, heading: str, row: str, column: str) -> bool:
        """Return whether there is such a cell."""
        try:
            self.cell(heading, row, column)
        except LookupError:
            return False
        return True

    def goal(self, promise: str) -> str:
        """Return the measured value of a goal."""
        return next(row["measured"] for row in self.rows("Goals") if row["goal"] == promise)

    def fact(self, name: str) -> str:
        """Return a value of "Measured on", or an empty text."""
        rows = (list(row.values()) for row in self.rows("Measured on"))
        return next((value for key, value in rows if key == name), "")


def write(pages: dict[str, str]) -> None:
    """Write these pages, and the files made from all pages."""
    PAGES.mkdir(parents=True, exist_ok=True)
    for name, text in pages.items():
        (PAGES / f"{name}.md").write_text(text)
    for path, text in made().items():
        path.write_text(text)


def made() -> dict[Path, str]:
    """Render the files that are made from the pages."""
    pages = {page.name: page for page in _read()}
    return {LIST: _list(pages), README: _readme(pages)}


def stale() -> list[str]:
    """Return the files that are not up to date with the pages."""
    return [path.relative_to(ROOT).as_posix() for path, text in made().items() if path.read_text() != text]


def _read() -> Iterator[Page]:
    for name in ORDER:
        path = PAGES / f"{name}.md"
        if path.exists():
            yield Page(name, path.read_text())


def _list(pages: dict[str, Page]) -> str:
    lines = ["| page | measured | processor | goals reached | missed |", "| --- | --- | --- | --- | --- |"]
    missed = ["| page | goal | measured | verdict |", "| --- | --- | --- | --- |"]
    for page in pages.values():
        goals = page.rows("Goals")
        fallen = [goal for goal in goals if goal["verdict"] != "reached"]
        quick = " (quick)" if "**Quick runs" in page.text else ""
        lines.append(
            f"| [{page.title}](benchmarks/{page.name}.md) | {page.fact('date')}{quick} | {page.fact('processor')}"
            f" | {len(goals) - len(fallen)} of {len(goals)} | {len(fallen) or '-'} |"
        )
        missed += [f"| {page.name} | {goal['goal']} | {goal['measured']} | {goal['verdict']} |" for goal in fallen]
    parts = [
        INTRODUCTION,
        _rendered(SUMMARY, pages) + "\n",
        "## Pages\n",
        "\n".join(lines) + "\n",
        METHOD,
        "## Missed goals\n",
        "\n".join(missed) + "\n",
    ]
    return "\n".join(parts)


def _readme(pages: dict[str, Page]) -> str:
    text = README.read_text()
    for name, template in PARTS.items():
        begin = f"<!-- {name}: begin; written from {template.relative_to(ROOT)} -->\n"
        end = f"\n<!-- {name}: end -->"
        before, rest = text.split(begin)
        after = rest.split(end)[1]
        text = f"{before}{begin}{_rendered(template, pages)}{end}{after}"
    return text


def _rendered(template: Path, pages: dict[str, Page]) -> str:
    # Imported here, since benches/run.py needs jinja2 only for publishing.
    import jinja2  # noqa: PLC0415

    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=False
    )
    return environment.from_string(template.read_text()).render(pages).strip()


def _main(arguments: list[str]) -> int:
    if "--check" not in arguments:
        write({})
        return 0
    wrong = stale()
    for name in wrong:
        print(
            f"{name} is not up to date with docs/benchmarks/; run: python benches/harness/published.py",
            file=sys.stderr,
        )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
