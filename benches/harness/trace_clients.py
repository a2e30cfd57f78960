"""Clients that replay a trace in Mooncake's format: `weir llm`, guidellm and AIPerf."""

from __future__ import annotations

import itertools
import json
import string
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from harness.llm_clients import AIPERF, GUIDELLM, MODEL, OFFLINE, WEIR, aiperf_profile, downloaded
from harness.programs import Programs


@dataclass(frozen=True)
class TraceLoad:
    """Load of one trial: the server, the trace, and the tokens of a block with one hash."""

    url: str
    file: Path
    block: int


#: Command line for a load and a folder.
TraceCommand = Callable[[TraceLoad, Path], list[str]]


def trace_clients(programs: Programs) -> dict[str, TraceCommand]:
    """Return the clients that are installed."""

    def weir(load: TraceLoad, _folder: Path) -> list[str]:
        flags = ["--model", MODEL, "--trace", str(load.file), "--trace-block", str(load.block)]
        return [str(programs[WEIR]), "llm", load.url, *flags, "--format", "json", "-t", "1"]

    def guidellm(load: TraceLoad, folder: Path) -> list[str]:
        write_tokenizer(folder)
        source = {"kind": "json_file", "path": str(load.file)}
        return [
            *OFFLINE,
            str(programs[GUIDELLM]),
            "run",
            "--backend",
            f"kind=openai_http,target={load.url},model={MODEL}",
            "--profile",
            "kind=replay,schedule_turn=timestamp",
            "--tokenizer",
            f"kind=hf_auto,model={folder}",
            "--data",
            # It takes the milliseconds of the format for seconds.
            json.dumps({"kind": "mooncake", "hash_id_block_size": load.block, "time_scale": 0.001, "source": source}),
            "--output",
            f"kind=json,path={folder}/guidellm.json",
            "--disable-console",
        ]

    def aiperf(load: TraceLoad, folder: Path) -> list[str]:
        write_tokenizer(downloaded(folder))
        return [
            *aiperf_profile(programs, load.url, folder),
            "--input-file",
            str(load.file),
            "--custom-dataset-type",
            "mooncake_trace",
            "--isl-block-size",
            str(load.block),
            "--fixed-schedule",
            "--extra-inputs",
            "ignore_eos:true",
        ]

    every = {WEIR: weir, GUIDELLM: guidellm, AIPERF: aiperf}
    return {name: client for name, client in every.items() if name in programs}


def write_tokenizer(folder: Path) -> None:
    """Write a tokenizer whose tokens are three letters, as Hugging Face's libraries read it.

    With the space between them they have four bytes, and so as many tokens as `weir serve llm` counts.
    """
    letters = ("".join(word) for word in itertools.product(string.ascii_lowercase, repeat=3))
    vocabulary = {word: number for number, word in enumerate(["<unk>", "</s>", *letters])}
    # What the pattern does not find is dropped.
    split = {"type": "Split", "pattern": {"Regex": "[a-z]{3}"}, "behavior": "Removed", "invert": True}
    model = {"type": "WordLevel", "vocab": vocabulary, "unk_token": "<unk>"}
    tokenizer = {
        "version": "1.0",
        "normalizer": {"type": "Lowercase"},
        "pre_tokenizer": split,
        "model": model,
        "added_tokens": [],
    }
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    kind = {"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": "<unk>", "eos_token": "</s>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(kind))
