"""Benchmarks: weir beside its peers and beside a bare loop, in the same call.

    python benches/run.py [closed|open|truth|memory|scenario|scripts|http2|grpc|streams|websocket|llm|traces|watched|
                           serve|gate|client|smart|overload|harm|send|delivery|limiter|shared|verdicts|agents|all|page]
                           [--quick] [--pairs 5] [--minutes 10] [--publish]

`benches/peers.sh` installs the peers; a missing one is reported and left out. Every run is saved
with its command line in benches/out/*.json. A section is a page: --publish writes the pages of
the measured sections to docs/benchmarks/, their list to docs/benchmarks.md and the figures to
README.md; without it pages go to stdout. `page` measures nothing and renders saved results.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from harness import (
    agents,
    clients,
    closed,
    delivery,
    gated,
    grpc,
    harm,
    http2,
    limiters,
    llm,
    machine,
    memory,
    opened,
    overload,
    page,
    programs,
    published,
    results,
    scenario,
    scripts,
    sending,
    served,
    sharing,
    smart,
    streams,
    traces,
    truth,
    verdicts,
    watched,
    websocket,
)
from harness.plan import Plan
from harness.trial import Bench, Trial

SECTIONS: dict[str, Callable[[Bench], list[Trial]]] = {
    "closed": closed.measure,
    "open": opened.measure,
    "truth": truth.measure,
    "memory": memory.measure,
    "scenario": scenario.measure,
    "scripts": scripts.measure,
    "http2": http2.measure,
    "grpc": grpc.measure,
    "streams": streams.measure,
    "websocket": websocket.measure,
    "llm": llm.measure,
    "traces": traces.measure,
    "watched": watched.measure,
    "serve": served.measure,
    "gate": gated.measure,
    "client": clients.measure,
    "smart": smart.measure,
    "overload": overload.measure,
    "harm": harm.measure,
    "send": sending.measure,
    "delivery": delivery.measure,
    "limiter": limiters.measure,
    "shared": sharing.measure,
    "verdicts": verdicts.measure,
    "agents": agents.measure,
}


def main() -> int:
    """Measure the sections, then write their pages."""
    args = _arguments()
    args.out.mkdir(parents=True, exist_ok=True)
    names = list(SECTIONS) if args.section in ("all", "page") else [args.section]
    if args.section != "page":
        plan = Plan.of(quick=args.quick, pairs=args.pairs, seed=args.seed, minutes=args.minutes)
        if not _measure(names, plan, args.out, args.packaged):
            return 2
    sections = results.load(args.out, tuple(names))
    if not sections:
        print(f"run.py: no saved results in {args.out}", file=sys.stderr)
        return 2
    pages = {name: page.render(section) for name, section in sections.items()}
    if args.publish:
        published.write(pages)
        print(f"run.py: wrote docs/benchmarks/ {', '.join(pages)}, docs/benchmarks.md and README.md", file=sys.stderr)
    else:
        print("\n".join(pages.values()))
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Benchmark weir beside its peers.")
    parser.add_argument("section", nargs="?", default="all", choices=[*SECTIONS, "all", "page"])
    parser.add_argument("--quick", action="store_true", help="short trial runs, without valid results")
    parser.add_argument("--pairs", type=int, help="rounds, each with every contender once [5; --quick: 2]")
    parser.add_argument("--minutes", type=float, default=0, help="duration of more runs of harm [%(default)s]")
    parser.add_argument("--seed", type=int, default=1, help="seed of the order within rounds [%(default)s]")
    parser.add_argument("--out", type=Path, default=programs.ROOT / "benches" / "out", help="folder of saved results")
    parser.add_argument("--packaged", type=Path, help="a package's command, in place of one that is built here")
    parser.add_argument("--publish", action="store_true", help="write docs/benchmarks* and the figures of README.md")
    return parser.parse_args()


def _measure(names: list[str], plan: Plan, out: Path, packaged: Path | None) -> bool:
    machine.raise_file_limit()
    found = programs.find(packaged)
    for name in found.missing():
        print(f"run.py: {name} is missing and left out", file=sys.stderr)
    if "lean" not in found or "cost" not in found:
        print("run.py: the bench programs were not built", file=sys.stderr)
        return False
    server_core, generator_core = machine.cores()
    bench = Bench(found, plan, server_core, generator_core)
    for name in names:
        described = machine.describe()
        results.save(out, name, bench, described, SECTIONS[name](bench))
    return True


if __name__ == "__main__":
    sys.exit(main())
