"""Pages of the documentation as shell scripts: their commands in order, in one folder, as a reader types them."""

from __future__ import annotations

import re
import shlex
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from naming import ROOT
from programs import binary

_PIECE = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)
_FILE = re.compile(r"`([\w-]+\.(?:hurl|toml|py))`")

Changes = Sequence[tuple[str, str]]


def script(
    page: str,
    folder: Path,
    *,
    ports: Sequence[str],
    shorter: Changes = (),
    exit_codes: Callable[[str], set[int] | None],
    runs_python: bool = False,
) -> str:
    """Shell script of a page, which ends with the first command that fails.

    Args:
        page: Path in the repository.
        folder: Folder in which the script is to run; the page's files are written into it.
        ports: Ports of the page; others that are free stand in their places.
        shorter: Patterns in commands and their replacements, such as durations.
        exit_codes: Exit codes that a command may have; None for one that is not run.
        runs_python: Whether blocks of Python are run as well.
    """
    lines = ["set -m", f"PATH={shlex.quote(str(binary().parent))}:$PATH", "trap 'kill $(jobs -p) 2>/dev/null' EXIT"]
    free = _free_ports(ports)
    changes = [(rf"\b{old}\b", new) for old, new in free.items()]
    for index, (name, shown) in enumerate(_pieces(page)):
        text = changed(shown, changes)
        if name == "python":
            if not runs_python:
                continue
            (folder / f"block{index}.py").write_text(text)
            # Without assertions: a busy machine may miss an objective of the page.
            text = f"{shlex.quote(sys.executable)} -O block{index}.py"
        elif name:
            (folder / name).write_text(changed(text, shorter))
            continue
        codes = exit_codes(text)
        if codes is None:
            continue
        text = changed(text, shorter)
        lines += [f"echo {shlex.quote('$ ' + text)}", text]
        if text.split("#")[0].rstrip().endswith("&"):
            port = next((port for port in free.values() if port in re.findall(r"(?:--port|--listen) (\d+)", text)), "")
            port = port or next((port for port in free.values() if port in text), free["8080"])
            lines.append(f"until (exec 3<>/dev/tcp/127.0.0.1/{port}) 2>/dev/null; do sleep 0.02; done")
        else:
            wanted = " ".join(str(code) for code in sorted(codes))
            lines.append(f'code=$?; case " {wanted} " in *" $code "*) ;; *) echo "exit code $code"; exit 9;; esac')
    return "\n".join(lines) + "\n"


def changed(text: str, changes: Changes) -> str:
    """Text with each pattern replaced."""
    for pattern, new in changes:
        text = re.sub(pattern, new, text)
    return text


def _free_ports(ports: Sequence[str]) -> dict[str, str]:
    held = [socket.socket() for _ in ports]
    found = {}
    for name, one in zip(ports, held, strict=True):
        one.bind(("127.0.0.1", 0))
        found[name] = str(one.getsockname()[1])
    for one in held:
        one.close()
    return found


def _pieces(page: str) -> Iterator[tuple[str, str]]:
    """Yield files, as their name and text, "python" with a program, and "" with a command, in the order of a page."""
    text = (ROOT / page).read_text("utf-8")
    name, end = "", 0
    for block in _PIECE.finditer(text):
        named = _FILE.findall(text[end : block.start()])
        name = (named or [name])[-1]
        end = block.end()
        language, body = block.groups()
        if language == "python" and named and name.endswith(".py"):
            yield name, body
            continue
        if language in {"hurl", "toml"}:
            yield name or "gate.toml", body
        if language == "python":
            yield "python", body
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
