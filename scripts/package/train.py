"""Run what weir does most, for a build with counters: the compiler then knows which paths are taken.

    python3 scripts/package/train.py WEIR

Every request goes to this machine's loopback. It takes about half a minute.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

POLICIES = [
    "--hedge",
    "p98:1",
    "--retries",
    "2",
    "--deadline",
    "1s",
    "--attempt-timeout",
    "800ms",
    "--budget",
    "5%+1/1s",
]
LOADS = [
    ["-c", "100", "-d", "3s"],
    ["-r", "3000", "-d", "3s"],
    ["--h2c", "--streams", "16", "-c", "4", "-d", "2s"],
    ["-c", "20", "-d", "2s", "-m", "POST", "-b", '{"name":"value"}', "-H", "Content-Type: application/json"],
    ["-c", "20", "-d", "1s", "--no-keepalive"],
]


@contextmanager
def running(command: list[str]) -> Iterator[str]:
    """Start a service of weir, and yield its address; it ends by itself at SIGTERM, which writes its counts."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        line = process.stdout.readline() if process.stdout else ""
        if not line:
            raise SystemExit(f"train: did not start: {' '.join(command)}")
        yield str(json.loads(line)["listening"])
    finally:
        process.terminate()
        process.wait(60)


def run(command: list[str], *accepted: int) -> None:
    """Run a command of weir, which ends with 0 or one of these exit codes."""
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode not in (0, *accepted):
        raise SystemExit(f"train: {' '.join(command)}: exit {done.returncode}: {done.stderr}")


def load(weir: str, url: str) -> None:
    """Send each kind of load. A run that is not trusted, on a busy machine, takes the same paths."""
    for flags in LOADS:
        run([weir, "load", url, "--quiet", "--format", "json", *flags], 3, 4)


def send(weir: str, url: str, folder: Path) -> None:
    """Deliver jobs."""
    jobs = folder / "jobs.jsonl"
    jobs.write_text("".join(json.dumps({"id": str(number)}) + "\n" for number in range(20_000)))
    flags = ["--url", f"{url}/echo?id={{id}}", "--max-concurrency", "64", "--out", str(folder / "results.jsonl")]
    run([weir, "send", str(jobs), "--quiet", *flags])


def stream(weir: str, model: str) -> None:
    """Read streams of tokens."""
    flags = ["--model", "weir-llm", "--concurrency", "50", "-d", "3s", "--input-tokens", "8", "--output-tokens", "64"]
    run([weir, "llm", model, "--quiet", "--format", "json", *flags], 3, 4)


def main(weir: str) -> None:
    """Run services, gateways without and with policies, loads, a queue, and streams."""
    with (
        tempfile.TemporaryDirectory() as folder,
        running([weir, "serve", "httpbin", "--quiet"]) as service,
        running([weir, "gate", "--listen", "0", "--quiet", "--upstream", service]) as plain,
        running([weir, "gate", "--listen", "0", "--quiet", "--upstream", service, *POLICIES]) as policed,
        running([weir, "serve", "llm", "--quiet", "--slots", "50", "--prefill", "5ms", "--decode", "5ms"]) as model,
    ):
        for url in (service, plain, policed):
            load(weir, f"{url}/echo?text=0123456789")
        send(weir, service, Path(folder))
        stream(weir, model)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    main(sys.argv[1])
