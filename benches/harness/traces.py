"""Traces of language models: arrivals, lengths and shared blocks at the server, for `weir llm`, guidellm and AIPerf."""

from __future__ import annotations

import json
import random
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.llm_clients import MODEL, WEIR
from harness.process import run
from harness.servers import StartError, service
from harness.trace_clients import TraceLoad, trace_clients
from harness.trial import Bench, Trial, rounds, shown

#: Requests per second of each case.
RATES = (5, 20)
#: Tokens of a block with one hash, as in Mooncake's traces.
BLOCK = 512
#: Prompts begin with the blocks of one of these many roots, and have up to this many of them.
ROOTS, MAX_SHARED = 5, 4
MAX_OUTPUT = 32
#: Time that clients in Python have to import their packages and make the prompts.
START_S = 240
#: The server takes all requests at once, and a response has as many tokens as it may.
FLAGS = (
    "--slots", "4096", "--batch-effect", "0%", "--jitter", "0%", "--prefill", "20ms", "--prefill-per-token", "0ms",
    "--decode", "5ms", "--output-tokens", "1000000", "--block-tokens", str(BLOCK),
)  # fmt: skip


@dataclass(frozen=True)
class Recorded:
    """Request of the trace."""

    at_ms: float
    input_tokens: int
    output_tokens: int
    blocks: tuple[int, ...]

    def line(self) -> str:
        """Format it as a line of Mooncake."""
        return json.dumps({
            "timestamp": self.at_ms,
            "input_length": self.input_tokens,
            "output_length": self.output_tokens,
            "hash_ids": self.blocks,
        })  # fmt: skip


def case(rate: int) -> str:
    """Return the name of a case."""
    return f"{rate} requests/s"


def trace(rate: int, seconds: int, seed: int) -> list[Recorded]:
    """Make a trace with random arrivals, whose prompts share the blocks of a few roots."""
    rng = random.Random(seed)
    found: list[Recorded] = []
    at_s = 0.0
    while at_s < seconds:
        root, shared = rng.randrange(ROOTS), rng.randrange(MAX_SHARED + 1)
        blocks = (*(root * MAX_SHARED + block for block in range(shared)), 1000 + len(found))
        tokens = shared * BLOCK + rng.randint(1, BLOCK - 1)
        found.append(Recorded(round(at_s * 1000, 3), tokens, rng.randint(1, MAX_OUTPUT), blocks))
        at_s += rng.expovariate(rate)
    return found


def measure(bench: Bench) -> list[Trial]:
    """Measure interleaved rounds of all clients at each rate; a round has its own trace."""
    found = trace_clients(bench.programs)
    if WEIR not in found:
        return []
    trials = []
    pairs = [(rate, name) for rate in RATES for name in found]
    for number, (rate, name) in rounds(pairs, bench.plan.trace_rounds, bench.plan.seed):
        trial = Trial(case(rate), name, number, asked_s=bench.plan.trace_s)
        lines = trace(rate, bench.plan.trace_s, bench.plan.seed + number)
        with tempfile.TemporaryDirectory(prefix="weir-traces-") as folder:
            trials.append(_trial(bench, trial, found[name], lines, Path(folder)))
    return trials


def _trial(bench: Bench, trial: Trial, client: Any, lines: list[Recorded], folder: Path) -> Trial:
    """Replay a trace; requests of the trial are those that the server has responded to."""
    file, record = folder / "trace.jsonl", folder / "record"
    file.write_text("".join(f"{one.line()}\n" for one in lines))
    command = [str(bench.programs[WEIR]), "serve", "llm", "--model", MODEL, *FLAGS, "--record", str(record)]
    try:
        with service("llm", command, bench.server_core) as server:
            asked = client(TraceLoad(server.url.rstrip("/"), file, BLOCK), folder)
            seconds = trial.asked_s + START_S
            finished = run(asked, core=bench.generator_core, cost=bench.programs["cost"], seconds=seconds)
        trial.command = shown(asked).replace(str(folder), "FOLDER")
        records = [json.loads(line) for line in record.read_text("utf-8").splitlines()]
        if finished.status:
            said = (finished.stderr.strip() or finished.stdout.strip()).splitlines()
            trial.error = f"exit {finished.status} after {len(records)} requests: {said[-1] if said else 'no message'}"
            return trial
        trial.requests, trial.max_rss_mb = len(records), finished.max_rss_mb
        trial.user_us_per_request = finished.user_s * 1e6 / max(len(records), 1)
        trial.sys_us_per_request = finished.sys_s * 1e6 / max(len(records), 1)
        trial.server = judge(lines, records)
        if len(records) != len(lines):
            trial.error = f"{len(records)} requests of {len(lines)}"
    except (StartError, ValueError, KeyError, OSError) as error:
        trial.error = f"not measured: {type(error).__name__}: {error}"
    return trial


def judge(lines: list[Recorded], records: list[dict[str, Any]]) -> dict[str, Any]:
    """Compare the server's records with the trace.

    The k-th arrival is compared with the k-th of the trace. The start of the trace is unknown to the server: that one
    is taken for which half of the requests are early and half are late.
    """
    records = sorted(records, key=lambda record: record["began_ns"])
    late = sorted(record["began_ns"] / 1e6 - one.at_ms for record, one in zip(records, lines, strict=False))
    middle = late[len(late) // 2] if late else 0.0
    off = sorted(abs(time - middle) for time in late)

    def at(fraction: float) -> float | None:
        return off[min(int(fraction * len(off)), len(off) - 1)] if off else None

    whole, seen = shared_blocks(lines)
    return {
        "off_ms": {"p50": at(0.5), "p99": at(0.99), "max": at(1.0)},
        "prompts": _same([one.input_tokens for one in lines], [record["input_tokens"] for record in records]),
        "responses": _same([one.output_tokens for one in lines], [record["output_tokens"] for record in records]),
        "excess_tokens": _mean([r["input_tokens"] for r in records]) - _mean([one.input_tokens for one in lines]),
        "blocks": sum(record["blocks"] for record in records) / max(whole, 1),
        "seen_blocks": sum(record["seen_blocks"] for record in records) / max(seen, 1),
    }


def shared_blocks(lines: list[Recorded]) -> tuple[int, int]:
    """Count the whole blocks of a trace, and those whose prefix an earlier prompt has: the same in any order."""
    prefixes: set[tuple[int, ...]] = set()
    whole = seen = 0
    for one in lines:
        for end in range(1, one.input_tokens // BLOCK + 1):
            whole += 1
            seen += one.blocks[:end] in prefixes
            prefixes.add(one.blocks[:end])
    return whole, seen


def _same(expected: list[int], found: list[int]) -> float:
    """Return the fraction of the expected numbers that were found, each as often as it is there."""
    return (Counter(expected) & Counter(found)).total() / max(len(expected), 1)


def _mean(numbers: list[int]) -> float:
    return sum(numbers) / max(len(numbers), 1)
