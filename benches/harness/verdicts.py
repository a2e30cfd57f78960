"""Correctness of verdicts: `weir study` and `weir capacity` on services with known results.

Two equal services, one that is 5% slower, and one whose capacity is its slots over its delay, as real processes. The
simulations of the statistics have far more rounds (`cargo test compare capacity`); this tests the whole program.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

from harness.process import run
from harness.sender import scratch, served, summary
from harness.servers import StartError
from harness.trial import Bench, Trial, shown

STUDY, CAPACITY = "weir study", "weir capacity"
SAME, SLOWED = "two that are the same", "one of two is 5 % slower"
KNOWN = "a capacity that is known"

CONNECTIONS = 16
SLOTS, DELAY_MS, SLOWER = 8, 4.0, 1.05
#: Services of capacity searches. Each search has a different capacity: a load level might be the exact result.
POOL, LEAST_MS, MORE_MS, OBJECTIVE, STEP = 16, 4.03, 0.1, "p99<100ms", "8s"


def measure(bench: Bench) -> list[Trial]:
    """Run studies and searches in turn."""
    if "weir" not in bench.programs:
        return []
    trials = []
    for number in range(bench.plan.verdicts):
        trials.append(_study(bench, SAME, number, _same(bench)))
        trials.append(_study(bench, SLOWED, number, _slowed(bench)))
        trials.append(_capacity(bench, number))
    return trials


def _same(bench: Bench) -> dict[str, list[str]]:
    command = [str(bench.programs["weir"]), "serve", "httpbin", "--port", "{port}", "-q"]
    return {"one": command, "other": command}


def _slowed(bench: Bench) -> dict[str, list[str]]:
    def command(delay_ms: float) -> list[str]:
        work = ["work", "--mix", "good=1", "--delay", f"{delay_ms}ms", "--slots", f"{SLOTS}", "--max-queue", "1000"]
        return [str(bench.programs["weir"]), "serve", *work, "--port", "{port}", "-q"]

    return {"one": command(DELAY_MS), "other": command(DELAY_MS * SLOWER)}


def _study(bench: Bench, case: str, number: int, variants: dict[str, list[str]]) -> Trial:
    """Run a study of two variants with the default number of repeats."""
    trial = Trial(case, STUDY, number)
    try:
        with scratch() as folder:
            file = folder / "study.toml"
            file.write_text("\n".join(_lines(bench, variants, number)))
            command = [str(bench.programs["weir"]), "study", str(file), "--format", "json", "--quiet"]
            trial.command = f"{shown(command)} # {'; '.join(shown(line) for line in variants.values())}"
            finished = run(command, core=None, cost=bench.programs["cost"], seconds=300)
            said = summary(finished)
            trial.server = {"verdicts": [_verdict(verdict) for verdict in said["verdicts"]]}
            trial.server["found"] = trial.server["verdicts"][0]
    except (ValueError, KeyError, IndexError, OSError) as error:
        trial.error = f"not measured: {error}"
    trial.say("{found}")
    return trial


def _lines(bench: Bench, variants: dict[str, list[str]], seed: int) -> Iterator[str]:
    path = "api/work" if "work" in variants["one"] else ""
    yield f"seed = {seed}"
    for name, command in variants.items():
        yield f"[variants.{name}]"
        yield f"command = {json.dumps(command)}"
    yield "[loads.some]"
    yield f'url = "http://127.0.0.1:{{port}}/{path}"'
    yield f"connections = {CONNECTIONS}"
    yield f'duration = "{bench.plan.verdict_s}s"'
    yield "[timeouts]"
    yield 'warmup = "0s"'


def _verdict(verdict: dict[str, Any]) -> dict[str, Any]:
    fields = {name: verdict[name] for name in ("finding", "effect", "ci", "confidence", "primary")}
    return {"metric": verdict["metric"]["name"], **fields}


def _capacity(bench: Bench, number: int) -> Trial:
    trial = Trial(KNOWN, CAPACITY, number)
    slots = ["--slots", str(POOL), "--max-queue", "1000000"]
    work_ms = LEAST_MS + MORE_MS * number
    try:
        with served(bench, "work", "--mix", "good=1", "--delay", f"{work_ms:.2f}ms", *slots) as server:
            command = [str(bench.programs["weir"]), "capacity", f"{server.url}api/work", "--slo", OBJECTIVE]
            command += ["--step-time", STEP, "--seed", str(number), "--format", "json", "--quiet"]
            trial.command = shown(command)
            said = summary(run(command, core=bench.generator_core, cost=bench.programs["cost"], seconds=300))
            trial.server = {name: said[name] for name in ("passes", "fails", "confidence", "limited_by", "reason")}
            trial.server["true_per_s"] = POOL * 1000 / work_ms
    except (ValueError, KeyError, OSError, StartError) as error:
        trial.error = f"not measured: {error}"
    trial.say("{true_per_s:.0f}/s: [{passes:.0f}, {fails:.0f}], {confidence:.3f}")
    return trial


def calls_a_difference(trial: Trial) -> bool:
    """Check whether any metric of the study is better or worse."""
    return any(verdict["finding"] in ("better", "worse") for verdict in trial.server["verdicts"])


def calls_it_worse(trial: Trial) -> bool:
    """Check whether the primary metric of the slower one is worse."""
    return bool(trial.server["found"]["finding"] == "worse")


def brackets(trial: Trial) -> bool:
    """Check whether the bounds contain the true capacity."""
    passes, fails = ends(trial)
    return passes <= 1 <= fails


def is_close(trial: Trial) -> bool:
    """Check whether both bounds are within 5% of the true capacity."""
    return all(0.95 <= end <= 1.05 for end in ends(trial))


def ends(trial: Trial) -> tuple[float, float]:
    """Return both bounds as multiples of the true capacity; nan where there is none."""
    true = trial.server["true_per_s"]
    passes, fails = (trial.server[end] or math.nan for end in ("passes", "fails"))
    return passes / true, fails / true
