"""Clients of language models under test: `weir llm`, guidellm and AIPerf."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.process import Finished
from harness.programs import Programs
from harness.streams import PERCENTILES, percentiles

WEIR, GUIDELLM, AIPERF = "weir", "guidellm", "aiperf"
MODEL = "weir-llm"
#: Words of a tokenizer that counts them; none is downloaded.
PROMPT = "hello world this is prompt number {}"
PROMPTS = 2000


@dataclass(frozen=True)
class Load:
    """Load of one trial: the server, streams at the same time, the time of a token, tokens, and the length."""

    url: str
    streams: int
    per_token: str
    tokens: int
    seconds: int


@dataclass(frozen=True)
class Client:
    """Client under test: its command line for a load and a folder, and a reader of TTFT, TPOT, chunks and failures."""

    command: Callable[[Load, Path], list[str]]
    read: Callable[[Finished, Path], dict[str, Any]]


def clients(programs: Programs) -> dict[str, Client]:
    """Return the clients that are installed."""

    def weir(load: Load, _folder: Path) -> list[str]:
        # Evenly over the time of a token: streams that begin together would have their tokens together.
        flags = ["--model", MODEL, "-c", str(load.streams), "--ramp-up", load.per_token]
        flags += ["-d", f"{load.seconds}s", "--format", "json", "-t", "1"]
        return [
            str(programs[WEIR]),
            "llm",
            load.url,
            *flags,
            "--input-tokens",
            "8",
            "--output-tokens",
            str(load.tokens),
        ]

    def guidellm(load: Load, folder: Path) -> list[str]:
        (folder / "prompts.txt").write_text("".join(PROMPT.format(n) + "\n" for n in range(PROMPTS)))
        _tokenizer(folder)
        return [
            *OFFLINE,
            str(programs[GUIDELLM]),
            "run",
            "--backend",
            f"kind=openai_http,target={load.url.rstrip('/')},model={MODEL}",
            "--profile",
            f"kind=concurrent,streams={load.streams}",
            "--constraint",
            f"kind=max_duration,seconds={load.seconds}",
            "--tokenizer",
            f"kind=hf_auto,model={folder}",
            "--data",
            f"kind=text_file,path={folder}/prompts.txt",
            "--output",
            f"kind=json,path={folder}/guidellm.json",
            "--disable-console",
        ]

    def aiperf(load: Load, folder: Path) -> list[str]:
        prompts = (json.dumps({"text": PROMPT.format(n)}) + "\n" for n in range(PROMPTS))
        (folder / "prompts.jsonl").write_text("".join(prompts))
        _tokenizer(downloaded(folder))
        return [
            *aiperf_profile(programs, load.url.rstrip("/"), folder),
            "--concurrency",
            str(load.streams),
            "--benchmark-duration",
            str(load.seconds),
            "--input-file",
            f"{folder}/prompts.jsonl",
            "--custom-dataset-type",
            "single_turn",
        ]

    every = {
        WEIR: Client(weir, _read_weir),
        GUIDELLM: Client(guidellm, _read_guidellm),
        AIPERF: Client(aiperf, _read_aiperf),
    }
    return {name: client for name, client in every.items() if name in programs}


OFFLINE = ["env", "HF_HUB_OFFLINE=1", "TRANSFORMERS_OFFLINE=1"]


def aiperf_profile(programs: Programs, url: str, folder: Path) -> list[str]:
    """Return the command line of AIPerf up to its load: streamed chats, whose results are in `folder`/aiperf."""
    return [
        *OFFLINE,
        f"HF_HOME={folder}",
        str(programs[AIPERF]),
        "profile",
        "-m",
        MODEL,
        "--url",
        url,
        "--endpoint-type",
        "chat",
        "--streaming",
        "--tokenizer",
        "weir/words",
        "--use-server-token-count",
        "--output-artifact-dir",
        f"{folder}/aiperf",
        "--ui",
        "none",
    ]


def downloaded(folder: Path) -> Path:
    """Return the folder of a tokenizer `weir/words`, as if it had been downloaded into this cache.

    AIPerf takes a tokenizer by its name among those that were, and not by its folder.
    """
    revision = "0" * 40
    snapshot = folder / "hub" / "models--weir--words" / "snapshots" / revision
    snapshot.mkdir(parents=True)
    named = folder / "hub" / "models--weir--words" / "refs"
    named.mkdir()
    (named / "main").write_text(revision)
    return snapshot


def _tokenizer(folder: Path) -> None:
    """Write a tokenizer of words, as Hugging Face's libraries read it."""
    vocabulary = {"<unk>": 0, "</s>": 1}
    model = {"type": "WordLevel", "vocab": vocabulary, "unk_token": "<unk>"}
    tokenizer = {"version": "1.0", "pre_tokenizer": {"type": "Whitespace"}, "model": model, "added_tokens": []}
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    kind = {"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": "<unk>", "eos_token": "</s>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(kind))


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


def _read_aiperf(_finished: Finished, folder: Path) -> dict[str, Any]:
    # Its summary has no p99.9; its list of requests has all times.
    lines = (folder / "aiperf" / "profile_export.jsonl").read_text("utf-8").splitlines()
    measured = [record["metrics"] for record in map(json.loads, lines) if not record.get("error")]
    # What others call TPOT is its ITL.
    times = {"TTFT": "time_to_first_token", "TPOT": "inter_token_latency"}
    picked: dict[str, Any] = {
        name: percentiles(each[field]["value"] * 1e6 for each in measured if field in each)
        for name, field in times.items()
    }
    return picked | {"responses": len(measured), "failed": len(lines) - len(measured)}
