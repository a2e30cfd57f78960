"""One measurement: a language model whose times are known, and a client that reports them.

    python trial.py --client NAME --rate R --seconds S --tokens N --seed N --out FOLDER

The model has a core, and the client all others. The model's record has the time of each token, and the client's report
the same as the client saw it; the last line on stdout compares both.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
MODEL = "weir-llm"
PREFILL, DECODE = "50ms", "20ms"
#: Processes of the client that is said to need several, each with its part of the rate.
PROCESSES = 4
CLIENTS = ("asyncio", "processes", "aiperf", "weir")
#: Time after the last request in which all responses have to be there, in seconds; aiperf also starts in it.
END_S = 120.0

Percentiles = dict[str, float]


def percentiles(seconds: Iterable[float]) -> Percentiles:
    """Return median and p99 in milliseconds."""
    ordered = sorted(seconds)
    if not ordered:
        raise ValueError("no response has ended")
    return {f"p{level}": 1000 * ordered[math.ceil(level / 100 * len(ordered)) - 1] for level in (50, 99)}


@contextmanager
def model(args: argparse.Namespace, core: int) -> Iterator[str]:
    """Start a model with the times of `PREFILL` and `DECODE`, which writes a record; yield its address."""
    command = ["weir", "serve", "llm", "--slots", "4096", "--batch-effect", "0%", "--prefill", PREFILL]
    command += ["--decode", DECODE, "--output-tokens", str(args.tokens), "--seed", str(args.seed)]
    command += ["--record", str(args.out / "record.jsonl"), "--quiet"]
    with subprocess.Popen(pinned([core], command), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield json.loads(process.stdout.readline())["listening"]
        finally:
            process.terminate()


def pinned(cores: list[int], command: list[str]) -> list[str]:
    """Return the command pinned to cores."""
    return ["taskset", "--cpu-list", ",".join(map(str, cores)), *command]


def commands(args: argparse.Namespace, url: str) -> list[list[str]]:
    """Return the command lines of a client."""
    if args.client == "weir":
        flags = ["--model", MODEL, "--rate", str(args.rate), "--arrivals", "poisson", "-d", f"{args.seconds}s"]
        flags += ["--input-tokens", "8", "--output-tokens", str(args.tokens), "--seed", str(args.seed), "-t", "1"]
        return [["weir", "llm", url, *flags, "--format", "json", "--quiet"]]
    if args.client == "aiperf":
        return [aiperf(args, url)]
    parts = PROCESSES if args.client == "processes" else 1
    flags = ["--url", url, "--rate", str(args.rate / parts), "--seconds", str(args.seconds)]
    flags += ["--tokens", str(args.tokens)]
    return [
        [
            *(sys.executable, str(HERE / "with_asyncio.py"), *flags),
            *("--seed", str(args.seed * PROCESSES + part), "--out", str(args.out / f"times-{part}.jsonl")),
        ]
        for part in range(parts)
    ]


def aiperf(args: argparse.Namespace, url: str) -> list[str]:
    """Return the command line of AIPerf, with a tokenizer and prompts that need no download."""
    # It takes a tokenizer by its name among those that were downloaded, and not by its folder.
    named = args.out / "hub" / "models--study--words"
    snapshot = named / "snapshots" / ("0" * 40)
    snapshot.mkdir(parents=True)
    (named / "refs").mkdir()
    (named / "refs" / "main").write_text("0" * 40)
    words = {"type": "WordLevel", "vocab": {"<unk>": 0, "</s>": 1}, "unk_token": "<unk>"}
    split = {"type": "Whitespace"}
    tokenizer = {"version": "1.0", "pre_tokenizer": split, "model": words, "added_tokens": []}
    (snapshot / "tokenizer.json").write_text(json.dumps(tokenizer))
    kind = {"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": "<unk>", "eos_token": "</s>"}
    (snapshot / "tokenizer_config.json").write_text(json.dumps(kind))
    prompts = args.out / "prompts.jsonl"
    prompts.write_text("".join(json.dumps({"text": f"hello world this is prompt {n}"}) + "\n" for n in range(200)))
    flags = ["--request-rate", str(args.rate), "--benchmark-duration", str(args.seconds)]
    flags += ["--random-seed", str(args.seed), "--extra-inputs", f"max_tokens:{args.tokens}"]
    return [
        *("env", "HF_HUB_OFFLINE=1", "TRANSFORMERS_OFFLINE=1", f"HF_HOME={args.out}"),
        *("aiperf", "profile", "-m", MODEL, "--url", url, "--endpoint-type", "chat", "--streaming"),
        *("--tokenizer", "study/words", "--use-server-token-count", *flags),
        *("--input-file", str(prompts), "--custom-dataset-type", "single_turn"),
        *("--output-artifact-dir", str(args.out / "aiperf"), "--ui", "none"),
    ]


def reported(args: argparse.Namespace, stdout: list[str]) -> dict[str, Percentiles]:
    """Return TTFT and TPOT as the client reports them, both from the send."""
    if args.client == "weir":
        run = json.loads(stdout[0])["llm"]
        names = {"ttft": "ttft_service_ms", "tpot": "tpot_ms"}
        return {name: {level: run[field][level] for level in ("p50", "p99")} for name, field in names.items()}
    if args.client == "aiperf":
        # What others call TPOT is its inter-token latency.
        names = {"ttft": "time_to_first_token", "tpot": "inter_token_latency"}
        lines = (args.out / "aiperf" / "profile_export.jsonl").read_text("utf-8").splitlines()
        found = [record["metrics"] for record in map(json.loads, lines) if not record.get("error")]
        return {
            name: percentiles(each[field]["value"] / 1000 for each in found if field in each)
            for name, field in names.items()
        }
    files = sorted(args.out.glob("times-*.jsonl"))
    times = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    return {name: percentiles(each[name] for each in times) for name in ("ttft", "tpot")}


def recorded(args: argparse.Namespace) -> tuple[list[dict[str, Any]], dict[str, Percentiles]]:
    """Return the records of whole responses, and their TTFT and TPOT."""
    lines = (args.out / "record.jsonl").read_text().splitlines()
    whole = [record for record in map(json.loads, lines) if record["end"] == "complete"]
    return whole, {name: percentiles(each[f"{name}_ns"] / 1e9 for each in whole) for name in ("ttft", "tpot")}


def main() -> int:
    """Measure, and print the metrics."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--client", required=True, choices=CLIENTS)
    parser.add_argument("--rate", type=float, required=True)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    first, *others = sorted(os.sched_getaffinity(0))
    over = time.monotonic() + args.seconds + END_S
    with model(args, first) as url:
        running = [
            subprocess.Popen(pinned(others or [first], command), stdout=subprocess.PIPE, text=True)
            for command in commands(args, url)
        ]
        stdout = [process.communicate(timeout=over - time.monotonic())[0] for process in running]
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    # The exit code of weir says whether it trusts its own run, too.
    if any(process.returncode not in (0, 3) for process in running):
        print(f"{args.client} ended with {[process.returncode for process in running]}", file=sys.stderr)
        return 1
    said, (whole, known) = reported(args, stdout), recorded(args)
    tokens = sum(record["output_tokens"] for record in whole)
    metrics = {
        f"{name}_{level}_{kind}": value
        for name in ("ttft", "tpot")
        for level in ("p50", "p99")
        for kind, value in (
            ("to_record", said[name][level] / known[name][level]),
            ("ms", said[name][level]),
            ("recorded_ms", known[name][level]),
        )
    }
    metrics |= {
        "cpu_us_per_token": 1e6 * (usage.ru_utime + usage.ru_stime) / tokens,
        "tokens_per_s": tokens / args.seconds,
        "responses": len(whole),
    }
    print(json.dumps({name: round(value, 4) for name, value in metrics.items()}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
