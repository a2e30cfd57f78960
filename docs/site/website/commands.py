"""Pages of commands, made from what `weir COMMAND --help` prints."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field

from website.page import Page

_ENTRY = re.compile(r"^ {2,6}(-|\[|<)")
_COMMON = re.compile(r"(?:-., )?--(?:quiet|log-format|help|version)\b")
_SPECIAL = re.compile(r"([\\`*_\[\]<>|{}#~$])")


@dataclass
class Entry:
    """Flag or argument.

    Attributes:
        name: Spelling, such as ``-d, --duration <TIME>``.
        text: Description, with defaults and possible values.
    """

    name: str
    text: str = ""


@dataclass
class Help:
    """What `--help` of a command prints.

    Attributes:
        about: Description.
        usage: Synopsis.
        commands: Names and descriptions of subcommands, without `help`.
        arguments: Positional arguments.
        groups: Flags by the heading above them.
        examples: Lines of the examples.
        reference: Address of the command's page, such as ``docs/load.md``.
    """

    about: str = ""
    usage: str = ""
    commands: dict[str, str] = field(default_factory=dict)
    arguments: list[Entry] = field(default_factory=list)
    groups: dict[str, list[Entry]] = field(default_factory=dict)
    examples: list[str] = field(default_factory=list)
    reference: str = ""


def parse(text: str) -> Help:
    """Read what clap prints for `--help`."""
    shown = Help()
    heading = ""
    for block in _blocks(text):
        if block.startswith("Usage: "):
            shown.usage = block.removeprefix("Usage: ").strip()
        elif block.startswith("Reference: "):
            shown.reference = block.removeprefix("Reference: ").strip()
        elif found := re.match(r"^(\S[^\n]*):\n", block):
            heading = found[1]
            _read_group(shown, heading, block[found.end() :])
        elif not shown.usage:
            shown.about = f"{shown.about}\n\n{block.strip()}".strip()
    return shown


def _blocks(text: str) -> Iterator[str]:
    """Yield parts that begin at the margin after an empty line."""
    yield from (part for part in re.split(r"\n\n(?=\S)", text.strip()) if part)


def _read_group(shown: Help, heading: str, body: str) -> None:
    if heading == "Exit codes":
        return
    # Those of the program are under several headings.
    are_commands = heading not in ("Help", "Examples", "Arguments") and not _ENTRY.match(body)
    if heading == "Commands" or are_commands:
        for line in body.splitlines():
            if found := re.match(r"^ {2}(\S+) +(.*)", line):
                shown.commands[found[1]] = found[2]
            elif shown.commands:
                last = list(shown.commands)[-1]
                shown.commands[last] += f" {line.strip()}"
        shown.commands.pop("help", None)
    elif heading == "Examples":
        shown.examples = [line.strip() for line in body.splitlines() if line.strip()]
    elif heading == "Arguments":
        shown.arguments = list(_entries(body))
    else:
        shown.groups[heading] = list(_entries(body))


def _entries(body: str) -> Iterator[Entry]:
    entry = None
    for line in body.splitlines():
        if _ENTRY.match(line) and not line.lstrip().startswith("- "):
            if entry:
                yield entry
            name, _, text = line.strip().partition("  ")
            entry = Entry(name, text.strip())
        elif entry and line.strip():
            entry.text = f"{entry.text} {line.strip()}".strip()
    if entry:
        yield entry


class Commands:
    """Pages of a program and all of its commands."""

    def __init__(self, program: str) -> None:
        """Take the path of the program."""
        self._program = program

    def pages(self) -> Iterator[Page]:
        """Yield the page with the list of all commands, and the page of each."""
        top = self._help()
        rows = []
        for command, about in self._walk([], top):
            name = f"commands/{'/'.join(command)}"
            rows.append(f"| [weir {' '.join(command)}]({name}.md) | {_escaped(about.about)} |")
            yield _page(name, command, about)
        head = (
            "# Help of all commands\n\nReference of each command and its flags, as `weir COMMAND --help` prints it.\n\n"
        )
        yield Page("commands", "", head + "| command | purpose |\n|---|---|\n" + "\n".join(rows) + "\n")

    def _walk(self, command: list[str], shown: Help) -> Iterator[tuple[list[str], Help]]:
        for name in shown.commands:
            inner = [*command, name]
            about = self._help(*inner)
            yield inner, about
            yield from self._walk(inner, about)

    def _help(self, *command: str) -> Help:
        done = subprocess.run([self._program, *command, "--help"], capture_output=True, text=True, check=True)
        return parse(done.stdout)


def _page(name: str, command: list[str], shown: Help) -> Page:
    title = f"weir {' '.join(command)}"
    # A package names the pages where it has installed them.
    guide = re.sub(r"^(docs/|.*/share/doc/weir/)", "", shown.reference)
    depth = len(command)
    head = f"# {title} --help\n\n{_escaped(shown.about[:1].upper() + shown.about[1:])}.\n\n"
    more = f"Guide and reference: [{guide.partition('#')[0]}]({'../' * depth}{guide}).\n" if guide else ""
    usage = f"```text\n{shown.usage}\n```\n\n"
    text = [head, f"```{{program}} {title}\n```\n\n", usage, more]
    plain = [head, usage, more]
    if shown.commands:
        base = name.rpartition("/")[2]
        rows = [
            f"| [{title} {inner}]({base}/{inner}.md) | {_escaped(about)} |" for inner, about in shown.commands.items()
        ]
        table = "\n## Commands\n\n| command | purpose |\n|---|---|\n" + "\n".join(rows) + "\n"
        text.append(table)
        plain.append(table)
    if shown.examples:
        examples = "\n## Examples\n\n```console\n" + "".join(f"$ {line}\n" for line in shown.examples) + "```\n"
        text.append(examples)
        plain.append(examples)
    for heading, entries in _ordered(shown):
        rows = [f"- `{entry.name}`: {_escaped(entry.text)}" for entry in entries]
        plain.append(f"\n## {heading}\n\n" + "\n".join(rows) + "\n")
        if heading != "Arguments":
            rows = [f"```{{option}} {entry.name}\n\n{_escaped(entry.text)}\n```\n" for entry in entries]
        text.append(f"\n## {heading}\n\n" + "\n".join(rows) + "\n")
    return Page(name, "", "".join(text), "".join(plain))


def _ordered(shown: Help) -> Iterator[tuple[str, list[Entry]]]:
    """Yield groups of arguments and flags; those that all commands have come last."""
    common: list[Entry] = []
    for heading, entries in {"Arguments": shown.arguments, **shown.groups}.items():
        own = [entry for entry in entries if not _COMMON.match(entry.name)]
        common += [entry for entry in entries if entry not in own]
        if own:
            yield heading, own
    yield "Flags of all commands", common


def _escaped(text: str) -> str:
    """Text of a help as Markdown."""
    return _SPECIAL.sub(r"\\\1", text)
