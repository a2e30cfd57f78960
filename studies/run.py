"""Runs studies of this folder, and keeps what their findings are written from.

    python studies/run.py NAME... [--quick] [--keep] [--fresh] [--weir PATH]

Each `*.toml` of a study is run by `weir study`, which installs the packages that its variants ask for. Results are in
`target/studies/`; called again, it goes on where it was. `--quick` only shows that everything works: packages install,
services start, and nobody fails who should not. `--keep` copies a summary, and the plots that the finding shows with
the numbers behind them, to `results/` and writes the README.md; `all` stands for all studies.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import finding
import summary

ROOT = Path(__file__).parents[1]
STUDIES = ROOT / "studies"
# Who is expected to fail: there, that is the finding.
FAILING = {"framework-choice": {"fastapi-2020"}, "sync-vs-async": {"then"}}
MOST_BYTES = 200_000


def main() -> int:
    """Run what was asked for, one after the other."""
    args = _arguments()
    found = sorted(path.parent.name for path in STUDIES.glob("*/finding.md.j2"))
    names = found if args.names == ["all"] else args.names
    if unknown := [name for name in names if not (STUDIES / name).is_dir()]:
        print(f"run.py: there is no study {unknown[0]}; see the folders of {STUDIES}", file=sys.stderr)
        return 2
    wrong = []
    for name in names:
        began = time.monotonic()
        out = ROOT / "target" / "studies" / ("quick" if args.quick else "full") / name
        wrong += [f"{name}: {why}" for why in _run(name, out, args)]
        print(f"{name}: {time.monotonic() - began:.0f} s, {out}", file=sys.stderr)
    print("\n".join(wrong), end="\n" if wrong else "", file=sys.stderr)
    return 1 if wrong else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Run studies.")
    parser.add_argument("names", nargs="+", metavar="NAME", help="a folder of studies/, or all")
    parser.add_argument("--quick", action="store_true", help="too short for an answer: whether everything works")
    parser.add_argument("--keep", action="store_true", help="keep the results, and write the finding")
    parser.add_argument("--fresh", action="store_true", help="measure everything anew")
    parser.add_argument("--weir", type=Path, default=_weir(), help="the command [%(default)s]")
    args = parser.parse_args()
    if args.quick and args.keep:
        parser.error("a quick run is no finding; leave --quick or --keep out")
    return args


def _weir() -> Path:
    """The command itself, rather than Python that starts it; what is measured may be weir."""
    built = [ROOT / "target" / "release" / "weir", ROOT / ".venv" / "bin" / "weir"]
    return next((path for path in built if path.exists()), Path(shutil.which("weir") or "weir"))


def _environment(weir: Path) -> dict[str, str]:
    """Studies find this weir, and then the Python that runs us: it has weir's package."""
    path = os.pathsep.join([str(weir.absolute().parent), str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    return os.environ | {"PYTHONDONTWRITEBYTECODE": "1", "PATH": path}


def _run(name: str, out: Path, args: argparse.Namespace) -> list[str]:
    """Runs all files of a study; what went wrong, a line each."""
    kept = out / "kept"
    shutil.rmtree(kept, ignore_errors=True)
    kept.mkdir(parents=True)
    wrong = []
    for file in sorted((STUDIES / name).glob("*.toml")):
        flags = [flag for flag in ("--quick", "--fresh") if getattr(args, flag.strip("-"))]
        command = [args.weir, "study", file, "--out", out / file.stem, *flags]
        done = subprocess.run(command, check=False, env=_environment(args.weir))
        if done.returncode != 0:
            return [f"weir study {file.name} ended with {done.returncode}"]
        wrong += _keep(name, file.stem, out / file.stem, kept)
    if args.keep and not wrong:
        results = STUDIES / name / "results"
        shutil.rmtree(results, ignore_errors=True)
        shutil.copytree(kept, results)
        found = finding.render(STUDIES / name)
        (STUDIES / name / "README.md").write_text(found)
        for path in results.iterdir():
            if path.suffix != ".json" and f"results/{path.stem}.svg" not in found:
                path.unlink()
    return wrong


def _keep(name: str, stem: str, results: Path, kept: Path) -> list[str]:
    """Puts what a finding needs into one folder of small files; says who failed that should not have."""
    prefix = "" if stem == "study" else f"{stem}-"
    short = summary.of_study(results)
    summary.write(short, kept / ("summary.json" if stem == "study" else f"{stem}.json"))
    for form in ("svg", "csv"):
        for plot in (results / "plots").glob(f"*.{form}"):
            shutil.copyfile(plot, kept / f"{prefix}{plot.name}")
    failed = [of for of in short["figures"] if of["failed"] and of["variant"] not in FAILING.get(name, set())]
    large = [path.name for path in kept.iterdir() if path.stat().st_size > MOST_BYTES]
    return [
        *(f"{of['variant']} at {of['point']} failed in {of['failed']} rounds: {of['why']}" for of in failed),
        *(f"{file} is larger than {MOST_BYTES} bytes" for file in large),
    ]


if __name__ == "__main__":
    sys.exit(main())
