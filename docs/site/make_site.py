#!/usr/bin/env python3
"""Build the documentation as a site: `make docs`, or this program with the packages of the group `docs`.

    python docs/site/make_site.py [--weir PROGRAM] [--out DIR]

Pages are the Markdown files of docs/ as they are; pages of commands, schemas and Python are made from the program. The
result needs no server: open index.html. Warnings of Sphinx, dead links and foreign hosts are errors: exit code 1.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from website import access, beside, check, commands, contents, links, python_api, repository, schemas
from website.page import Page

ROOT = Path(__file__).resolve().parents[2]

ABOUT = "Load-test HTTP services; also a test server, a gateway and a job sender."

MADE = ("commands", "python-api", "schemas")
"""Pages that are made from the program; they stand at the end of the section `REFERENCE`."""

REFERENCE = "Reference"


def gathered(weir: str) -> tuple[dict[str, Page], repository.Documents]:
    """All pages by name, and where they are from."""
    documents = repository.Documents(ROOT, schemas.names(ROOT))
    made = [*commands.Commands(weir).pages(), *schemas.pages(ROOT), *python_api.pages()]
    pages = documents.pages | {page.name: page for page in made}
    titles = {name: page.title for name, page in pages.items()}
    for name, page in pages.items():
        page.text = links.titled(page.text, f"{name}.md", titles)
        page.plain = links.titled(page.plain, f"{name}.md", titles)
    return pages, documents


def arranged(pages: dict[str, Page]) -> list[contents.Section]:
    """Sections of the site; each page gets the pages below it."""
    index = pages["index"]
    name_of = {f"{name}.md": name for name in pages}
    found = contents.sections(index.text, name_of)
    sections = [
        contents.Section(section.title, (*section.names, *MADE)) if section.title == REFERENCE else section
        for section in found
    ]
    contents.arrange(pages, {name for section in sections for name in section.names})
    return sections


def staged(folder: Path, pages: dict[str, Page], sections: list[contents.Section]) -> None:
    """Write the pages as Sphinx reads them, with their places in the table of contents."""
    for page in pages.values():
        text = page.text if page.is_listed else f"---\norphan: true\n---\n\n{page.text}"
        if page.children:
            text += contents.toctree(page.children)
        if page.name == "index":
            text += "".join(contents.toctree(section.names, section.title) for section in sections)
        file = folder / f"{page.name}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")


def build(weir: str, out: Path, work: Path) -> int:
    """Build the site into `out`, by way of `work`; return the exit code."""
    if out.exists() and any(out.iterdir()) and not (out / ".buildinfo").exists():
        raise FileExistsError(f"{out} has files that are not of a built site; choose another folder with --out")
    for folder in (out, work):
        shutil.rmtree(folder, ignore_errors=True)
    source = work / "source"
    pages, documents = gathered(weir)
    sections = arranged(pages)
    staged(source, pages, sections)
    documents.copy_files(source)
    configuration = str(Path(__file__).parent)
    command = [sys.executable, "-m", "sphinx", "-b", "html", "-q", "-W", "--keep-going", "-j", "auto"]
    command += ["-c", configuration, "-d", str(work / "doctrees"), str(source), str(out)]
    if subprocess.run(command, check=False).returncode:
        return 1
    _slim(out / "_static" / "pygments.css")
    access.mend(out)
    for name in schemas.names(ROOT):
        shutil.copyfile(ROOT / "docs" / "schema" / name, out / name)
    beside.write(out, pages, sections, ABOUT)
    read = check.read(out)
    faults = list(check.faults(out, read))
    print(*faults, sep="\n", end="\n" if faults else "", file=sys.stderr)
    heaviest = max((check.weight(out, page), page.path) for page in read.values())
    print(
        f"{len(pages)} pages in {os.path.relpath(out)}/index.html; the heaviest is {heaviest[1]}: {heaviest[0]:,} bytes"
    )
    return 1 if faults else 0


def _slim(style: Path) -> None:
    """Remove comments and line breaks of a style that all pages load: a third of its bytes."""
    style.write_text(re.sub(r"/\*.*?\*/|\n", "", style.read_text("utf-8"), flags=re.S), "utf-8")


def main() -> int:
    """Read the arguments, and build."""
    parser = argparse.ArgumentParser(description="Build the documentation as a site.", allow_abbrev=False)
    program = Path(sysconfig.get_path("scripts")) / "weir"
    parser.add_argument("--weir", default=str(program), metavar="PROGRAM", help="weir [default: beside this Python]")
    parser.add_argument(
        "--out", default="target/docs/html", type=Path, metavar="DIR", help="[default: target/docs/html]"
    )
    arguments = parser.parse_args()
    if not shutil.which(arguments.weir):
        parser.error(f"there is no program {arguments.weir}; build weir (make docs does), or give --weir")
    out = arguments.out.resolve()
    try:
        return build(arguments.weir, out, out.parent / f"{out.name}.work")
    except (contents.ContentsError, OSError, LookupError) as error:
        print(f"make_site: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
