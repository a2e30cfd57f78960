"""Run studies of this folder, and save the input of their findings.

    python studies/run.py NAME... [--quick] [--keep] [--rerun] [--weir PATH]

Each `*.toml` of a study is run by `weir study`, which installs the packages that its variants require. Results are in
`target/studies/`; another call resumes. `--quick` only checks that everything works, several studies at a time:
packages install, services start, and no variant fails unexpectedly. `--keep` copies a summary, and the plots of the
finding with the numbers behind them, to `results/` and writes the README.md; `all` stands for all studies.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import finding
import summary

ROOT = Path(__file__).parents[1]
STUDIES = ROOT / "studies"
# Variants that are expected to fail: that is their finding.
FAILING = {"framework-choice": {"fastapi-2020"}, "sync-vs-async": {"then"}}
MAX_BYTES = 200_000


def main() -> int:
    """Run the named studies, one after the other."""
    args = _arguments()
    found = sorted(path.parent.name for path in STUDIES.glob("*/finding.md.j2"))
    names = found if args.names == ["all"] else args.names
    if unknown := [name for name in names if not (STUDIES / name).is_dir()]:
        print(f"run.py: unknown study {unknown[0]}; choose a folder of {STUDIES}", file=sys.stderr)
        return 2

    def run(name: str) -> list[str]:
        began = time.monotonic()
        out = ROOT / "target" / "studies" / ("quick" if args.quick else "full") / name
        wrong = [f"{name}: {why}" for why in _run(name, out, args)]
        print(f"{name}: {time.monotonic() - began:.0f} s, {out}", file=sys.stderr)
        return wrong

    # Quick runs measure nothing, so they may disturb each other; most of their time they wait.
    with ThreadPoolExecutor(2 * (os.cpu_count() or 1) if args.quick else 1) as pool:
        wrong = [why for found in pool.map(run, names) for why in found]
    print("\n".join(wrong), end="\n" if wrong else "", file=sys.stderr)
    return 1 if wrong else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Run studies.")
    parser.add_argument("names", nargs="+", metavar="NAME", help="a folder of studies/, or all")
    parser.add_argument("--quick", action="store_true", help="short trial run, without a valid result")
    parser.add_argument("--keep", action="store_true", help="save the results, and write the finding")
    parser.add_argument("--rerun", action="store_true", help="re-measurement of everything")
    parser.add_argument("--weir", type=Path, default=_weir(), help="path of weir [%(default)s]")
    args = parser.parse_args()
    if args.quick and args.keep:
        parser.error("--quick and --keep exclude each other: a quick run has no valid result")
    return args


def _weir() -> Path:
    """Return the binary rather than a Python launcher, since weir itself may be measured."""
    built = [ROOT / "target" / "release" / "weir", ROOT / ".venv" / "bin" / "weir"]
    return next((path for path in built if path.exists()), Path(shutil.which("weir") or "weir"))


def _environment(weir: Path) -> dict[str, str]:
    """Return an environment with this weir first in PATH, then this Python, which has weir's package."""
    path = os.pathsep.join([str(weir.absolute().parent), str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    return os.environ | {"PYTHONDONTWRITEBYTECODE": "1", "PATH": path}


def _run(name: str, out: Path, args: argparse.Namespace) -> list[str]:
    """Run all files of a study; return errors, a line each."""
    saved = out / "saved"
    shutil.rmtree(saved, ignore_errors=True)
    saved.mkdir(parents=True)
    wrong = []
    for file in sorted((STUDIES / name).glob("*.toml")):
        flags = [flag for flag in ("--quick", "--rerun") if getattr(args, flag.strip("-"))]
        command = [args.weir, "study", file, "--out", out / file.stem, *flags]
        # Side by side, the output of each is shown at its end.
        shown = subprocess.PIPE if args.quick else None
        done = subprocess.run(
            command,
            check=False,
            env=_environment(args.weir),
            text=True,
            stdout=shown,
            stderr=shown and subprocess.STDOUT,
        )
        print(done.stdout or "", end="", flush=True)
        if done.returncode != 0:
            return [f"weir study {file.name} ended with {done.returncode}"]
        wrong += _save(name, file.stem, out / file.stem, saved)
    if args.keep and not wrong:
        results = STUDIES / name / "results"
        shutil.rmtree(results, ignore_errors=True)
        shutil.copytree(saved, results)
        found = finding.render(STUDIES / name)
        (STUDIES / name / "README.md").write_text(found)
        for path in results.iterdir():
            if path.suffix != ".json" and f"results/{path.stem}.svg" not in found:
                path.unlink()
    return wrong


def _save(name: str, stem: str, results: Path, saved: Path) -> list[str]:
    """Copy the input of a finding to a folder of small files; return unexpected failures, a line each."""
    prefix = "" if stem == "study" else f"{stem}-"
    short = summary.of_study(results)
    summary.write(short, saved / ("summary.json" if stem == "study" else f"{stem}.json"))
    for form in ("svg", "csv"):
        for plot in (results / "plots").glob(f"*.{form}"):
            shutil.copyfile(plot, saved / f"{prefix}{plot.name}")
    failed = [of for of in short["measurements"] if of["failed"] and of["variant"] not in FAILING.get(name, set())]
    large = [path.name for path in saved.iterdir() if path.stat().st_size > MAX_BYTES]
    return [
        *(f"{of['variant']} at {of['point']} failed in {of['failed']} rounds: {of['reason']}" for of in failed),
        *(f"{file} is larger than {MAX_BYTES} bytes" for file in large),
    ]


if __name__ == "__main__":
    sys.exit(main())
