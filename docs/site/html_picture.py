"""Picture of an HTML report for README.md: a load of a service that is frozen for 1 s of every 5 s, in Chromium.

    python docs/site/html_picture.py [--weir target/release/weir] [docs/report.png]

The file also has the words that it shows, as text. A test compares them with those of a report of today.
"""

from __future__ import annotations

import argparse
import re
import struct
import sys
import tempfile
import zlib
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python" / "tests"))
sys.path.insert(0, str(Path(__file__).parent))

from browser import Browser

import report_picture

ROOT = Path(__file__).resolve().parents[2]
PICTURE = ROOT / "docs" / "report.png"

SERVICE = ("work", "--mix", "good=1", "--delay", "lognormal:20ms,p99=60ms")
LOAD = ["--rate", "200", "-d", "28s", "--slo", "p99<200ms", "--slo", "errors<1%"]
"""Load of the service, whose times are far above weir's own: a busy machine does not make the run untrusted."""

WIDTH, HEIGHT = 1200, 1388
"""Size of the window in pixels."""
_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_KEYWORD = b"Description"

SHOWN = """
    [...document.querySelectorAll("h1, h2, h3, dt, th, td:first-child, .legend, button")]
        .filter((one) => one.getBoundingClientRect().height && one.getBoundingClientRect().bottom < innerHeight)
        .map((one) => one.innerText).join(" ")
"""
"""Script that returns the labels in sight."""


def report(weir: str, load: list[str], page: Path) -> None:
    """Write the HTML report of a load of the frozen service."""
    report_picture.report(weir, [*load, "--html", str(page)], service=SERVICE, path="/api/work")
    page.write_text(re.sub(r"127\.0\.0\.1:\d+", "localhost:8080", page.read_text("utf-8")))


def shown(browser: Browser, page: Path) -> str:
    """Open a report, light, in the window of the picture, and return its labels."""
    browser.size(WIDTH, HEIGHT)
    browser.prefer("light")
    browser.open(page.as_uri())
    return str(browser.evaluate(SHOWN))


def words(text: str) -> set[str]:
    """Words of labels, without numbers and units, which differ from run to run."""
    return {word.lower() for word in re.findall(r"[A-Za-z]{3,}", re.sub(r"\S*\d\S*", " ", text))}


def with_text(png: bytes, text: str) -> bytes:
    """Picture that also has a text."""
    kind, content = b"tEXt", _KEYWORD + b"\0" + text.encode("latin-1", "replace")
    chunk = struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
    # The first chunk, of 13 bytes, has to come first.
    at = len(_SIGNATURE) + 12 + 13
    return png[:at] + chunk + png[at:]


def text_of(png: bytes) -> str:
    """Text of a picture, or an empty one."""
    at = len(_SIGNATURE)
    while at < len(png):
        size, kind = struct.unpack(">I4s", png[at : at + 8])
        content = png[at + 8 : at + 8 + size]
        if kind == b"tEXt" and content.startswith(_KEYWORD + b"\0"):
            return content[len(_KEYWORD) + 1 :].decode("latin-1")
        at += 12 + size
    return ""


def main() -> None:
    """Write the picture."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--weir", default=str(ROOT / "target" / "release" / "weir"), help="the command")
    parser.add_argument("file", nargs="?", type=Path, default=PICTURE, help="picture to write")
    given = parser.parse_args()
    # A browser that was killed may still write.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        page = Path(scratch) / "run.html"
        report(given.weir, LOAD, page)
        browser = Browser(Path(scratch) / "chromium")
        try:
            text = shown(browser, page)
            browser.screenshot(given.file)
        finally:
            browser.close()
    given.file.write_bytes(with_text(given.file.read_bytes(), text))


if __name__ == "__main__":
    main()
