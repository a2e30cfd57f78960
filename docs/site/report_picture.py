"""Picture of a report for README.md: a load of a service that is frozen for 1 s of every 5 s.

    python docs/site/report_picture.py [--weir target/release/weir] [docs/report.svg]

The report is what `weir load` prints to a terminal. A test compares its words with those of a report of today.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import termios
import threading
from pathlib import Path
from xml.sax.saxutils import escape

ROOT = Path(__file__).resolve().parents[2]
PICTURE = ROOT / "docs" / "report.svg"

COLUMNS = 96
CYCLE_S, FROZEN_S = 5.0, 1.0
LOAD = ["--rate", "500", "-d", "18s", "--slo", "p99<200ms", "--slo", "errors<1%"]

CELL, LINE, MARGIN, TITLE = 8.4, 19, 16, 30
"""Width of a character, height of a line, and distances, in pixels."""
STYLES = {"1": "b", "2": "d", "31": "r", "32": "g", "33": "y", "36": "c"}
"""Classes of the picture by codes of the terminal (SGR)."""
SHEET = (
    "text{font:14px ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace;fill:#d4d7dc;white-space:pre}"
    ".b{font-weight:bold}.d{fill:#8b9099}.r{fill:#f0717a}.g{fill:#8fcf7f}.y{fill:#e5c76b}.c{fill:#6cb6d9}"
)
_CODE = re.compile(r"\x1b\[([\d;]*)m")


def report(weir: str, load: list[str], *, service: tuple[str, ...] = ("httpbin",), path: str = "/") -> str:
    """Return what a load of a path of the frozen service prints to a terminal, with its codes."""
    serve = [weir, "serve", *service, "--port", "0"]
    with subprocess.Popen(serve, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        url = json.loads(process.stdout.readline())["listening"]
        ended = threading.Event()
        freezing = threading.Thread(target=_freeze, args=(process.pid, ended))
        freezing.start()
        try:
            return _printed([weir, "load", f"{url}{path}", *load]).replace(url, "http://localhost:8080")
        finally:
            ended.set()
            freezing.join()
            process.terminate()


def _freeze(process: int, ended: threading.Event) -> None:
    while not ended.wait(CYCLE_S - FROZEN_S):
        os.kill(process, signal.SIGSTOP)
        ended.wait(FROZEN_S)
        os.kill(process, signal.SIGCONT)


def _printed(command: list[str]) -> str:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, COLUMNS, 0, 0))
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=theirs, stderr=subprocess.DEVNULL):
        os.close(theirs)
        parts = []
        # A terminal whose last writer has gone is an error on Linux.
        try:
            while part := os.read(ours, 65536):
                parts.append(part)
        except OSError:
            pass
    os.close(ours)
    return b"".join(parts).decode().replace("\r\n", "\n")


def picture(command: str, printed: str) -> str:
    """Return the picture of a terminal with a command and what it has printed."""
    lines = [f"\x1b[32m$\x1b[0m \x1b[1m{command}\x1b[0m", "", *printed.rstrip().split("\n")]
    width, height = round(COLUMNS * CELL + 2 * MARGIN), len(lines) * LINE + 2 * MARGIN + TITLE
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">',
        f"<title>Report of weir load in a terminal</title><style>{SHEET}</style>",
        f'<rect width="{width}" height="{height}" rx="8" fill="#1e2227"/>',
        *(f'<circle cx="{22 + 20 * at}" cy="20" r="6" fill="#454b54"/>' for at in range(3)),
    ]
    for row, line in enumerate(lines):
        parts += _line(line, TITLE + MARGIN + (row + 1) * LINE - 5)
    return "\n".join([*parts, "</svg>", ""])


def _line(line: str, y: int) -> list[str]:
    parts, at, style = [], 0, ""
    for index, piece in enumerate(_CODE.split(line)):
        if index % 2:
            style = STYLES.get(piece, "")
        elif piece:
            named = f' class="{style}"' if style else ""
            # The length holds the columns where a reader's font has another width.
            place = f'x="{MARGIN + at * CELL:.1f}" y="{y}" textLength="{len(piece) * CELL:.1f}"'
            parts.append(f"<text {place}{named}>{escape(piece)}</text>")
            at += len(piece)
    return parts


def main() -> None:
    """Write the picture."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--weir", default=str(ROOT / "target" / "release" / "weir"), help="the command")
    parser.add_argument("file", nargs="?", type=Path, default=PICTURE, help="picture to write")
    given = parser.parse_args()
    load = " ".join(f'"{word}"' if "<" in word else word for word in LOAD)
    given.file.write_text(picture(f"weir load http://localhost:8080/ {load}", report(given.weir, LOAD)))


if __name__ == "__main__":
    main()
