"""Language models: TTFT and TPOT beside the server's own record, for `weir llm` and guidellm."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.process import Finished, run
from harness.servers import StartError, service
from harness.streams import PERCENTILES, percentiles
from harness.trial import Bench, Trial, rounds, shown

WEIR, GUIDELLM = "weir", "guidellm"
MODEL = "weir-llm"
#: Streams at the same time, and time per token: 10,000 tokens per second at most.
CASES = {1: "10ms", 10: "10ms", 100: "20ms", 1000: "100ms"}
TOKENS = 48
#: Words of a tokenizer that counts them; none is downloaded.
PROMPT = "hello world this is prompt number {}"


@dataclass(frozen=True)
class Client:
    """Client under test: its command line, and a reader of TTFT, TPOT, chunks and failures."""

    command: Callable[[str, int, int, Path], list[str]]
    read: Callable[[Finished, Path], dict[str, Any]]


def case(streams: int) -> str:
    """Return the name of a case."""
    return f"{streams:,} stream{'' if streams == 1 else 's'}, {CASES[streams].removesuffix('ms')} ms per token"


def measure(bench: Bench) -> list[Trial]:
    """Measure interleaved rounds of all clients at each number of streams."""
    clients = _clients(bench)
    if WEIR not in clients:
        return []
    pairs = [(streams, name) for streams in CASES for name in clients]
    return [
        _trial(
            bench, Trial(case(streams), name, number, "", bench.plan.delay_s, streams, 0, 0.0, 0.0, 0.0), clients[name]
        )
        for number, (streams, name) in rounds(pairs, bench.plan.slow_rounds, bench.plan.seed)
    ]


def _clients(bench: Bench) -> dict[str, Client]:
    programs = bench.programs

    def weir(url: str, streams: int, seconds: int, _folder: Path) -> list[str]:
        # Evenly over the time of a token: streams that begin together would have their tokens together.
        flags = ["--model", MODEL, "-c", str(streams), "--ramp-up", CASES[streams]]
        flags += ["-d", f"{seconds}s", "--format", "json", "-t", "1"]
        return [str(programs[WEIR]), "llm", url, *flags, "--input-tokens", "8", "--output-tokens", str(TOKENS)]

    def guidellm(url: str, streams: int, seconds: int, folder: Path) -> list[str]:
        (folder / "prompts.txt").write_text("".join(PROMPT.format(n) + "\n" for n in range(2000)))
        _tokenizer(folder)
        return [
            "env",
            "HF_HUB_OFFLINE=1",
            "TRANSFORMERS_OFFLINE=1",
            str(programs[GUIDELLM]),
            "run",
            "--backend",
            f"kind=openai_http,target={url.rstrip('/')},model={MODEL}",
            "--profile",
            f"kind=concurrent,streams={streams}",
            "--constraint",
            f"kind=max_duration,seconds={seconds}",
            "--tokenizer",
            f"kind=hf_auto,model={folder}",
            "--data",
            f"kind=text_file,path={folder}/prompts.txt",
            "--output",
            f"kind=json,path={folder}/guidellm.json",
            "--disable-console",
        ]

    every = {WEIR: Client(weir, _read_weir), GUIDELLM: Client(guidellm, _read_guidellm)}
    return {name: client for name, client in every.items() if name in programs}


def _tokenizer(folder: Path) -> None:
    """Write a tokenizer of words, as Hugging Face's libraries read it."""
    vocabulary = {"<unk>": 0, "</s>": 1}
    model = {"type": "WordLevel", "vocab": vocabulary, "unk_token": "<unk>"}
    tokenizer = {"version": "1.0", "pre_tokenizer": {"type": "Whitespace"}, "model": model, "added_tokens": []}
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    kind = {"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": "<unk>", "eos_token": "</s>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(kind))


def _trial(bench: Bench, trial: Trial, client: Client) -> Trial:
    """Load a server; requests of the trial are chunks that the server has sent."""
    streams, seconds = trial.connections or 1, trial.asked_s
    flags = ["--slots", "4096", "--batch-effect", "0%", "--prefill", "50ms", "--decode", CASES[streams]]
    with tempfile.TemporaryDirectory(prefix="weir-llm-") as name:
        folder = Path(name)
        seeded = ["--output-tokens", str(TOKENS), "--record", f"{folder}/record", "--seed", str(trial.round)]
        try:
            command = [str(bench.programs[WEIR]), "serve", "llm", *flags, *seeded]
            with service("llm", command, bench.server_core) as server:
                asked = client.command(server.url, streams, seconds, folder)
                finished = run(asked, core=bench.generator_core, cost=bench.programs["cost"], seconds=seconds + 60)
            trial.command = shown(asked).replace(str(folder), "FOLDER")
            _fill(trial, finished, client, folder)
        except (StartError, ValueError, KeyError, OSError) as error:
            trial.error = f"not measured: {type(error).__name__}: {error}"
    return trial


def _fill(trial: Trial, finished: Finished, client: Client, folder: Path) -> None:
    if finished.status:
        lines = (finished.stderr.strip() or finished.stdout.strip()).splitlines()
        trial.error = f"exit {finished.status}: {lines[-1] if lines else 'no message'}"
        return
    records = [json.loads(line) for line in (folder / "record").read_text("utf-8").splitlines()]
    whole = [record for record in records if record["end"] == "complete"]
    chunks = sum(len(record["chunks_ns"]) for record in records)
    trial.requests = chunks
    trial.user_us_per_request = finished.user_s * 1e6 / max(chunks, 1)
    trial.sys_us_per_request = finished.sys_s * 1e6 / max(chunks, 1)
    trial.max_rss_mb = finished.max_rss_mb
    trial.server = {
        "TTFT": percentiles(record["ttft_ns"] for record in whole),
        "TPOT": percentiles(record["tpot_ns"] for record in whole if record["tpot_ns"]),
        "responses": len(whole),
    }
    trial.report = client.read(finished, folder)


def _read_weir(finished: Finished, _folder: Path) -> dict[str, Any]:
    said = json.loads(finished.stdout)
    times = {"TTFT": said["llm"]["ttft_service_ms"], "TPOT": said["llm"]["tpot_ms"]}
    picked: dict[str, Any] = {name: {key: found[key] for key in PERCENTILES} for name, found in times.items()}
    return picked | {"responses": said["llm"]["requests"], "failed": said["requests"]["failed"]}


def _read_guidellm(_finished: Finished, folder: Path) -> dict[str, Any]:
    metrics = json.loads((folder / "guidellm.json").read_text("utf-8"))["benchmarks"][0]["metrics"]
    # What others call TPOT, the time per token behind the first, is its ITL.
    times = {"TTFT": "time_to_first_token_ms", "TPOT": "inter_token_latency_ms"}
    picked: dict[str, Any] = {
        name: {key: metrics[field]["successful"]["percentiles"][key] for key in PERCENTILES}
        for name, field in times.items()
    }
    totals = metrics["request_totals"]
    return picked | {"responses": totals["successful"], "failed": totals["errored"]}
