"""Tables and plots of the page on overload: each scenario with each limiter.

    python benches/simulation.py [--weir target/release/weir] [--json FILE] [--publish]

They are the results of `weir simulate --scenario all --limiter all --format json`, in virtual time: the same weir gives
the same page on any machine. --publish writes the tables to docs/overload.md, between the marks, and the plots beside
it; without it the tables go to stdout. --json reads the saved output of a run.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from harness.programs import ROOT
from harness.table import Row, number, table

PAGE = ROOT / "docs" / "overload.md"
PLOTS = ROOT / "docs" / "overload"
BEGIN, END = "<!-- written by benches/simulation.py -->\n", "<!-- end -->\n"

#: Scenarios with a plot.
PLOTTED = ["step-down", "step-up", "flash-crowd", "retry-storm", "long-overload", "cold-start", "many-gates"]
COLOURS = {
    "auto": "#0b3d91",
    "static": "#7f7f7f",
    "aimd": "#2ca02c",
    "vegas": "#9467bd",
    "gradient2": "#ff7f0e",
    "envoy": "#d62728",
    "codel": "#17a2b8",
    "none": "#c7a17a",
}
#: Maximum number of points of a line; more are averaged.
POINTS = 150

Run = dict[str, Any]


def main() -> int:
    """Run the simulation, and write its results."""
    args = _arguments()
    try:
        text = args.json.read_text("utf-8") if args.json else _simulate(args.weir)
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"simulation.py: {error}; build with 'cargo build --release', or use --weir PATH", file=sys.stderr)
        return 2
    simulation = json.loads(text)
    parts = "\n\n".join(_parts(simulation)) + "\n"
    if not args.publish:
        print(parts)
        return 0
    page = PAGE.read_text("utf-8")
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}\n{parts}\n{END}{after}", "utf-8")
    _plot(simulation)
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Write the page on overload.")
    parser.add_argument("--weir", type=Path, default=ROOT / "target" / "release" / "weir")
    parser.add_argument("--json", type=Path, help="output of 'weir simulate --format json'")
    parser.add_argument("--publish", action="store_true", help="write docs/overload.md and its plots")
    return parser.parse_args()


def _simulate(weir: Path) -> str:
    command = [weir, "simulate", "--scenario", "all", "--limiter", "all", "--format", "json"]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


def _parts(simulation: dict[str, Any]) -> Iterator[str]:
    runs: list[Run] = simulation["runs"]
    scenarios = list(dict.fromkeys(run["scenario"] for run in runs))
    limits = list(dict.fromkeys(run["limiter"] for run in runs))
    by = {(run["scenario"], run["limiter"]): run for run in runs}
    rank = {(one["scenario"], one["limiter"]): one for one in simulation["ranking"]}

    def cell(scenario: str, limit: str) -> str:
        run = by[scenario, limit]
        text = f"{run['headline']:.1%}, {run['scored']['p99_ratio']:.2f}x"
        return f"**{text}**" if not rank[scenario, limit]["beaten_by"] else text

    yield "Headline metric and p99 of the scored time; in bold where no limiter wins against it:"
    yield table(["", *limits], ([name, *(cell(name, limit) for limit in limits)] for name in scenarios))
    yield f"Scenarios that `{limits[0]}` wins, ties or loses:"
    yield table(["", *limits[1:]], _pairings(simulation["pairings"], limits[1:]))
    yield "Results of `auto`, phase by phase:"
    header = ["scenario", "phase", "offered / capacity", "goodput", "p99", "rejected", "settled", "limit", "drift"]
    yield table(header, (row for name in scenarios for row in _phases(by[name, limits[0]])))


def _pairings(pairings: list[dict[str, Any]], limits: list[str]) -> Iterator[Row]:
    by = {pairing["other"]: pairing for pairing in pairings}
    for word in ("wins", "ties", "losses"):
        yield [word, *(str(by[limit][word]) for limit in limits)]


def _phases(run: Run) -> Iterator[Row]:
    for figures in run["phases"]:
        settled = "-"
        if figures["overload"]:
            settled = number(figures["settle_s"], "{:.1f} s") if figures["settle_s"] is not None else "never"
        yield [
            run["scenario"],
            figures["name"],
            f"{figures['offered_per_s'] / figures['capacity_per_s']:.2f}",
            f"{figures['goodput']:.1%}",
            f"{figures['p99_ratio']:.2f}x",
            f"{figures['rejected']:.2%}",
            settled,
            number(figures["limit"], "{:.0f}"),
            number(figures["drift"], "{:+.1%}"),
        ]


def _plot(simulation: dict[str, Any]) -> None:
    import matplotlib as mpl  # noqa: PLC0415  # not needed by the tables

    mpl.use("svg")
    # Text is saved as text, and equal results give equal files.
    mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "weir", "font.size": 9, "axes.grid": True})
    mpl.rcParams.update({"grid.alpha": 0.3, "axes.spines.top": False, "axes.spines.right": False})
    PLOTS.mkdir(exist_ok=True)
    for scenario in PLOTTED:
        path = PLOTS / f"{scenario}.svg"
        _plot_one([run for run in simulation["runs"] if run["scenario"] == scenario], path)
        # Without rounding, decimals of coordinates are most of the file.
        rounded = re.sub(r"\d+\.\d{2,}", lambda found: f"{float(found[0]):.1f}", path.read_text("utf-8"))
        path.write_text("\n".join(line.rstrip() for line in rounded.splitlines()) + "\n", "utf-8")


def _plot_one(runs: list[Run], path: Path) -> None:
    from matplotlib import pyplot  # noqa: PLC0415

    figure, (goodput, at_work, p99) = pyplot.subplots(3, 1, figsize=(8, 7.5), sharex=True, layout="constrained")
    first = _thin(runs[0]["series"])
    times = [point["t_s"] for point in first]
    goodput.plot(times, [point["capacity_per_s"] for point in first], color="black", lw=1, ls=":", label="capacity")
    at_work.plot(times, [point["optimal_in_flight"] for point in first], color="black", lw=1, ls=":", label="optimum")
    for run in reversed(runs):
        points = _thin(run["series"])
        style: dict[str, Any] = {"color": COLOURS[run["limiter"]], "lw": 2 if run["limiter"] == "auto" else 1}
        goodput.plot(times, [point["goodput_per_s"] for point in points], label=run["limiter"], **style)
        at_work.plot(times, [max(point["in_flight"], 0.5) for point in points], **style)
        p99.plot(times, [point["p99_ms"] for point in points], **style)
    goodput.set_ylabel("responses in time / s")
    goodput.set_ylim(bottom=0)
    at_work.set_ylabel("calls at the upstream")
    at_work.set_yscale("log")
    p99.set_ylabel("p99 of accepted calls, ms")
    p99.set_ylim(bottom=0)
    p99.set_xlabel("s")
    figure.suptitle(runs[0]["scenario"])
    figure.legend(*goodput.get_legend_handles_labels(), loc="outside lower center", ncols=5, reverse=True)
    figure.savefig(path, metadata={"Date": None, "Creator": None})
    pyplot.close(figure)


def _thin(series: list[dict[str, Any]]) -> list[dict[str, Any]]:
    per_point = -(-len(series) // POINTS)
    return [_mean(series[at : at + per_point]) for at in range(0, len(series), per_point)]


def _mean(points: list[dict[str, Any]]) -> dict[str, Any]:
    mean: dict[str, Any] = {}
    for name in points[0]:
        known = [point[name] for point in points if point[name] is not None]
        mean[name] = sum(known) / len(known) if known else None
    return mean


if __name__ == "__main__":
    sys.exit(main())
