"""Language models: TTFT and TPOT beside the server's own record, for `weir llm`, guidellm and AIPerf."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from harness.llm_clients import WEIR, Client, Load, clients
from harness.process import Finished, run
from harness.servers import StartError, service
from harness.streams import percentiles
from harness.trial import Bench, Trial, rounds, shown

#: Streams at the same time, and time per token: 10,000 tokens per second at most.
CASES = {1: "10ms", 10: "10ms", 100: "20ms", 1000: "100ms"}
TOKENS = 48


def case(streams: int) -> str:
    """Return the name of a case."""
    return f"{streams:,} stream{'' if streams == 1 else 's'}, {CASES[streams].removesuffix('ms')} ms per token"


def measure(bench: Bench) -> list[Trial]:
    """Measure interleaved rounds of all clients at each number of streams."""
    found = clients(bench.programs)
    if WEIR not in found:
        return []
    pairs = [(streams, name) for streams in CASES for name in found]
    return [
        _trial(bench, Trial(case(streams), name, number, asked_s=bench.plan.delay_s, connections=streams), found[name])
        for number, (streams, name) in rounds(pairs, bench.plan.slow_rounds, bench.plan.seed)
    ]


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
                asked = client.command(Load(server.url, streams, CASES[streams], TOKENS, seconds), folder)
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
