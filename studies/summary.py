"""Summary of a study's results: the input of its finding, small enough to be committed."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Iterable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

Object = dict[str, Any]

# Metrics of a load and of a variant's use of resources; each is saved as median, lowest and highest of the rounds.
OF_LOADS = ("rate_per_s", "errors", "mean_ms", "p50_ms", "p90_ms", "p99_ms", "max_ms")
OF_USAGE: dict[str, Callable[[Object], float | None]] = {
    "memory_mib": lambda usage: (usage["pss_peak_bytes"] or usage["rss_peak_bytes"]) / 2**20,
    "cpu_us_per_response": lambda usage: usage["cpu_us_per_response"],
    "cores": lambda usage: usage["cores"],
    "threads": lambda usage: usage["threads_peak"],
}
MAX_VERDICTS = 300


def of_study(results: Path) -> Object:
    """Summarize the study with this results folder."""
    study = json.loads((results / "study.json").read_text())
    cells = study["measurements"]
    began = min(cell["started_unix_s"] for cell in cells)
    verdicts = [_verdict(verdict) for verdict in study["verdicts"]]
    if len(verdicts) > MAX_VERDICTS:
        verdicts = [verdict for verdict in verdicts if verdict["primary"]]
    return {
        "question": study["question"],
        "date": datetime.fromtimestamp(began, timezone.utc).date().isoformat(),
        # The sum, since a resumed study has gaps.
        "duration_s": _short(sum(cell["duration_s"] for cell in cells)),
        "weir": study["weir"],
        "quick": study["quick"],
        "rounds": study["repeats"],
        "missing": study["missing"],
        "machine": {key: study["machine"][key] for key in ("cores", "cpu", "memory_mib", "os")},
        "warmup_s": _short(max((cell["warmup"]["duration_s"] for cell in cells if cell["warmup"]), default=0.0)),
        "variants": study["variants"],
        "points": study["points"],
        "summary": study["summary"],
        "limitations": study["limitations"],
        "measurements": [
            _record(variant, point, _of(cells, variant, point), results)
            for variant in study["variants"]
            for point in study["points"]
        ],
        "verdicts": verdicts,
    }


def write(summary: Object, path: Path) -> None:
    """Write a summary with a line per record, for readable diffs."""
    members = []
    for key, value in summary.items():
        if isinstance(value, list) and value:
            lines = ",\n".join(f"  {json.dumps(one, ensure_ascii=False)}" for one in value)
            members.append(f" {json.dumps(key)}: [\n{lines}\n ]")
        else:
            members.append(f" {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}")
    path.write_text("{\n" + ",\n".join(members) + "\n}\n")


def _of(cells: list[Object], variant: str, point: Object) -> list[Object]:
    return [cell for cell in cells if cell["variant"] == variant and dict(cell["point"]) == point]


def _record(variant: str, point: Object, cells: list[Object], results: Path) -> Object:
    measured = [cell for cell in cells if cell["failure"] is None]
    failed = [cell["failure"]["reason"] for cell in cells if cell["failure"] is not None]
    names = dict.fromkeys(load["load"] for cell in measured for load in cell["loads"])
    loads = {name: [load for cell in measured for load in cell["loads"] if load["load"] == name] for name in names}
    usages = [cell["usage"] for cell in measured if cell["usage"]]
    printed = dict.fromkeys(key for cell in measured for key in cell["metrics"])
    return {
        "variant": variant,
        "point": point,
        "rounds": len(measured),
        "untrusted": sum(bool(cell["warnings"]) for cell in measured),
        "failed": len(failed),
        "reason": failed[0] if failed else None,
        "loads": {name: _load(of, results) for name, of in loads.items()},
        "usage": {key: spread for key, take in OF_USAGE.items() if (spread := _spread(map(take, usages)))},
        "metrics": {key: _spread(cell["metrics"].get(key) for cell in measured) for key in printed},
    }


def _load(metrics: list[Object], results: Path) -> Object:
    status: dict[str, int] = {}
    for of in metrics:
        for code, count in json.loads((results / of["run"]).read_text())["status"].items():
            status[code] = status.get(code, 0) + count
    return {**{key: _spread(of[key] for of in metrics) for key in OF_LOADS}, "status": status}


def _verdict(verdict: Object) -> Object:
    copied = {key: verdict[key] for key in ("load", "primary", "point", "base", "other", "finding", "reason", "runs")}
    interval = verdict["ci"]
    return {
        **copied,
        "metric": verdict["metric"]["name"],
        "effect": _short(verdict["effect"]),
        "ci": interval and [_short(end) for end in interval],
        "confidence": _short(verdict["confidence"]),
    }


def _spread(values: Iterable[float | None]) -> list[float] | None:
    """Return median, lowest and highest of the known values."""
    known = [value for value in values if value is not None]
    return [_short(of(known)) for of in (statistics.median, min, max)] if known else None


def _short(value: Any) -> Any:
    return value if value is None else float(f"{value:.5g}")
