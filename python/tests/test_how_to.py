"""How-to guides: the commands of each page run in order, in one shell, as a reader types them."""

from __future__ import annotations

import re
import shlex
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from naming import ROOT
from programs import binary, started

FOLDER = ROOT / "docs" / "how-to"
PAGES = sorted(path.stem for path in FOLDER.glob("*.md"))
PORTS = ("8001", "8002", "8080", "9001", "9999")
TIMEOUT_S = 120

SHORTER = [(r"-d \d+s", "-d 1s"), (r"--step-time \d+s", "--step-time 3s"), (r"in 1 2 3 4 5 6;", "in 1 2 3;")]
"""Durations in place of those of the pages, so that a page takes seconds."""

EXIT_CODES = {
    ("login", "--data wrong.csv"): {3},
    ("queue", "weir send orders.jsonl"): {0, 1},
    # Objectives, and differences between short runs, depend on how busy the machine is.
    ("read-a-report", "weir load"): {0, 1},
    ("gateway", "weir load"): {0, 1},
    ("capacity", "weir load"): {0, 1},
    ("capacity", "weir capacity"): {0, 1},
    ("two-commits", "weir compare"): {0, 1},
    ("two-commits", "git worktree"): None,
}
"""Exit codes of commands that may end with another one than 0, by page and text; None: not run here."""

_PIECE = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)
_FILE = re.compile(r"`([\w-]+\.(?:hurl|toml))`")


def pieces(page: str) -> Iterator[tuple[str, str]]:
    """Yield files, as their name and text, and commands, as "" and their text, in the order of a page."""
    text = (FOLDER / f"{page}.md").read_text("utf-8")
    name, end = "", 0
    for block in _PIECE.finditer(text):
        name = (_FILE.findall(text[end : block.start()]) or [name])[-1]
        end = block.end()
        language, body = block.groups()
        if language in {"hurl", "toml"}:
            yield name or "gate.toml", body
        if language == "console":
            yield from (("", command) for command in _commands(body))


def _commands(block: str) -> Iterator[str]:
    command, is_open = "", False
    for line in block.splitlines():
        if line.startswith("$ "):
            if command:
                yield command
            command, is_open = line[2:], True
        elif line.startswith("> "):
            command += f"\n{line[2:]}"
        elif is_open and command.endswith("\\"):
            command += f"\n{line}"
        else:
            is_open = False
    if command:
        yield command


def allowed(page: str, command: str) -> set[int] | None:
    return next((codes for (name, text), codes in EXIT_CODES.items() if name == page and text in command), {0})


def changed(text: str, changes: list[tuple[str, str]]) -> str:
    for pattern, new in changes:
        text = re.sub(pattern, new, text)
    return text


def script(page: str, folder: Path, ports: dict[str, str]) -> str:
    """Shell script of a page, which ends with the first command that fails."""
    lines = ["set -m", f"PATH={shlex.quote(str(binary().parent))}:$PATH", "trap 'kill $(jobs -p) 2>/dev/null' EXIT"]
    changes = [(rf"\b{old}\b", new) for old, new in ports.items()]
    for name, shown in pieces(page):
        text = changed(shown, changes)
        if name:
            (folder / name).write_text(text)
            continue
        codes = allowed(page, text)
        if codes is None:
            continue
        text = changed(text, SHORTER)
        lines += [f"echo {shlex.quote('$ ' + text)}", text]
        if text.split("#")[0].rstrip().endswith("&"):
            port = next((port for port in ports.values() if port in text), ports["8080"])
            lines.append(f"until (exec 3<>/dev/tcp/127.0.0.1/{port}) 2>/dev/null; do sleep 0.02; done")
        else:
            wanted = " ".join(str(code) for code in sorted(codes))
            lines.append(f'code=$?; case " {wanted} " in *" $code "*) ;; *) echo "exit code $code"; exit 9;; esac')
    return "\n".join(lines) + "\n"


def test_there_are_guides() -> None:
    assert len(PAGES) >= 6


@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_the_guide_run(page: str, tmp_path: Path) -> None:
    ports = {}
    with_ports = [socket.socket() for _ in PORTS]
    for name, held in zip(PORTS, with_ports, strict=True):
        held.bind(("127.0.0.1", 0))
        ports[name] = str(held.getsockname()[1])
    for held in with_ports:
        held.close()
    file = tmp_path / "guide.sh"
    file.write_text(script(page, tmp_path, ports))
    with started("bash", str(file), cwd=tmp_path) as process:
        out, err = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 0, f"{out}\n{err}"
