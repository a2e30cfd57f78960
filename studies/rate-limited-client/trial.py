"""One measurement: the reference generator, a rate-limited service, and a client between them; twice at the same time.

    python trial.py --client NAME --seconds S --settle S --seed N --out FOLDER

- at the original *pace* a request is made every 10.5 ms on average, 95.2 in a second
- *flooded* it is every 7.5 ms, 133 in a second: more than the limits let through, so that the client sets the rate

Each has a core, a service and a client of its own. Accepted and rejected requests are the service's counts; rates count
after `--settle` seconds, since at the start all windows are empty. The last line on stdout has the metrics; series.csv,
in the folder, has the time series.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean
from typing import Any

from generator import MAX_SLEEP_MS, requests
from jobs import READY, TTL_MS

HERE = Path(__file__).parent
SUPPLIES = {"pace": MAX_SLEEP_MS, "flooded": 15}
SAMPLE_S = 0.25
# Start time of a client that does not report its readiness; and the timeout of a client's end.
START_S, END_S = 0.5, 3.0
SEND = (
    "weir send - --url {url}/api/request?api_key={{key}}&nonce={{nonce}}&req_id={{id}} --ordered --limit 20/1s"
    f" --delay-bound 50ms --no-keepalive --ttl {TTL_MS}ms --store {{folder}}/jobs.db --out {{out}}"
    " --quiet --format json"
)
CLIENTS = {
    "interval": "with_asyncio.py --limiter interval",
    "ring": "with_asyncio.py --limiter ring",
    "buffer": "with_asyncio.py --limiter buffer --retry",
    "threads": "with_threads.py",
    "aiolimiter": "with_asyncio.py --limiter aiolimiter",
    "pyrate": "with_asyncio.py --limiter pyrate",
    "at-once": "with_asyncio.py --limiter ring --at-once",
    "weir-send": "",
    "AsyncSender": "with_weir.py --sender AsyncSender",
    "Sender": "with_weir.py --sender Sender",
}


@dataclass
class Sample:
    """Counts at a time."""

    at_s: float
    made: int
    accepted: int
    rejected: int
    overtaken: int
    blocked_keys: int


@dataclass
class Supply:
    """One of the two rates: makes requests, passes them to a client, and samples the service's counts."""

    name: str
    args: argparse.Namespace
    core: int
    made_at: list[float] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    results: list[dict[str, Any]] = field(default_factory=list)
    began: float = 0.0
    cpu_s: float = 0.0
    failure: str = ""

    def run(self) -> None:
        """Measure; an error is saved as `failure`."""
        folder = self.args.out / self.name
        folder.mkdir(parents=True, exist_ok=True)
        try:
            with (
                service(self.args.seed, self.core) as url,
                client(self.args.client, url, folder, self.core) as process,
            ):
                self._feed(process, url)
            self.results = [json.loads(line) for line in (folder / "results.jsonl").read_text().splitlines()]
        except (OSError, ValueError, RuntimeError) as error:
            last_line = (folder / "client.log").read_text().strip().splitlines()[-1:]
            self.failure = f"{self.name}: {error}; {last_line}"

    def _feed(self, process: subprocess.Popen[str], url: str) -> None:
        assert process.stdin is not None
        over = threading.Event()
        self.began = time.time()
        watching = threading.Thread(target=self._watch, args=(url, over))
        watching.start()
        try:
            for request in requests(self.args.seconds, self.args.seed, SUPPLIES[self.name]):
                self.made_at.append(time.time())
                process.stdin.write(f'{{"id":"{request}"}}\n')
                process.stdin.flush()
        except BrokenPipeError:
            # A client without a usable key ends early; its CPU time is measured at the end all the same.
            time.sleep(max(0.0, self.began + self.args.seconds - time.time()))
        over.set()
        watching.join()
        self.cpu_s = cpu_s(process.pid)

    def _watch(self, url: str, over: threading.Event) -> None:
        while True:
            last = over.wait(SAMPLE_S)
            stats = get_stats(url)
            rejected = stats["rejected"]
            keys = stats["keys"].values()
            self.samples.append(
                Sample(
                    time.time() - self.began,
                    len(self.made_at),
                    stats["accepted"],
                    rejected["rate_limited"] + rejected["blocked"],
                    rejected["invalid_nonce"],
                    sum(key["blocked"] for key in keys),
                )
            )
            if last:
                return

    # --- The metrics

    def metrics(self) -> dict[str, float]:
        """Return the metrics by name, with a prefix for the flooded rate."""
        prefix = "" if self.name == "pace" else f"{self.name}_"
        return {f"{prefix}{name}": round(value, 3) for name, value in self._metrics().items()}

    def _metrics(self) -> dict[str, float]:
        last = self.samples[-1]
        settled = next((sample for sample in self.samples if sample.at_s >= self.args.settle), last)
        over = self.began + last.at_s
        ended = [line for line in self.results if line["ended_ms"] / 1000 <= over]
        states = [line["state"] for line in ended]
        done = [line for line in ended if line["state"] == "done"]
        made = [self.made_at[int(line["id"])] * 1000 for line in done]
        took = sorted(line["ended_ms"] - at for line, at in zip(done, made, strict=True))
        late = sum(line["sent_ms"] - at > TTL_MS for line, at in zip(done, made, strict=True))
        open_ = [row[1] for row in self.opened()]
        blocked = next((sample.at_s for sample in self.samples if sample.blocked_keys), None)
        metrics = {
            "accepted_per_s": (last.accepted - settled.accepted) / max(last.at_s - settled.at_s, SAMPLE_S),
            "from_start_per_s": last.accepted / last.at_s,
            "made_per_s": last.made / last.at_s,
            "made": last.made,
            "accepted": last.accepted,
            "rejected": last.rejected,
            "overtaken": last.overtaken,
            "blocked_keys": last.blocked_keys,
            "expired": states.count("expired"),
            "dead_lettered": states.count("dead_lettered"),
            "late": late,
            "open_mean": mean(open_),
            "open_most": max(open_),
            "cpu_ms_per_accepted": 1000 * self.cpu_s / max(last.accepted, 1),
        }
        if blocked is not None:
            metrics["blocked_at_ms"] = 1000 * blocked
        if took:
            metrics |= {
                "response_mean_ms": mean(took),
                "response_p50_ms": took[len(took) // 2],
                "response_p99_ms": took[int(len(took) * 0.99)],
            }
        return metrics

    def opened(self) -> Iterator[tuple[float, int]]:
        """Yield the number of requests that were made and have not ended, at each sample."""
        ended = sorted(line["ended_ms"] / 1000 - self.began for line in self.results)
        at = 0
        for sample in self.samples:
            while at < len(ended) and ended[at] <= sample.at_s:
                at += 1
            yield sample.at_s, sample.made - at

    def accepted_lately(self) -> list[float]:
        """Return the rate over the last second, at each sample."""
        back = round(1 / SAMPLE_S)
        rates = []
        for index, sample in enumerate(self.samples):
            before = self.samples[index - back] if index >= back else Sample(0.0, 0, 0, 0, 0, 0)
            rates.append((sample.accepted - before.accepted) / (sample.at_s - before.at_s))
        return rates


# --- Programs


def get_stats(url: str) -> dict[str, Any]:
    """Return the counts of the service."""
    with urllib.request.urlopen(f"{url}/stats", timeout=5) as response:
        return dict(json.load(response))


@contextmanager
def service(seed: int, core: int) -> Iterator[str]:
    """Start a service like the original one; yield its address."""
    command = pinned(core, ["weir", "serve", "ratelimit", "--seed", str(seed), "--quiet"])
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield json.loads(process.stdout.readline())["listening"]
        finally:
            process.terminate()


@contextmanager
def client(name: str, url: str, folder: Path, core: int) -> Iterator[subprocess.Popen[str]]:
    """Start a client that takes requests on its stdin."""
    keys = list(get_stats(url)["keys"])
    out = folder / "results.jsonl"
    if name == "weir-send":
        command = SEND.format(url=url, folder=folder, out=out).split()
        command += [word for key in keys for word in ("--key", key)]
    else:
        script, *flags = CLIENTS[name].split()
        command = [sys.executable if "weir" not in script else "python3", str(HERE / script), *flags]
        command += ["--url", url, "--keys", ",".join(keys), "--out", str(out)]
    out.touch()
    with (
        (folder / "client.log").open("w") as log,
        subprocess.Popen(
            pinned(core, command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
        ) as process,
    ):
        try:
            if name == "weir-send":
                time.sleep(START_S)
            elif process.stdout is None or process.stdout.readline().strip() != READY:
                raise RuntimeError("the client did not start")
            yield process
            process.communicate(timeout=END_S)
        except subprocess.TimeoutExpired:
            pass
        finally:
            process.kill()


def pinned(core: int, command: list[str]) -> list[str]:
    """Return the command pinned to a core."""
    return ["taskset", "--cpu-list", str(core), *command]


def cpu_s(pid: int) -> float:
    """Return user and system time of a process so far."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return 0.0
    user, system = stat.rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def series(supplies: list[Supply], path: Path) -> None:
    """Write the time series, a line for each sample."""
    columns: dict[str, list[float]] = {"seconds": [sample.at_s for sample in supplies[0].samples]}
    for supply in supplies:
        columns[f"open requests ({supply.name})"] = [float(count) for _, count in supply.opened()]
        columns[f"accepted per s ({supply.name})"] = supply.accepted_lately()
    with path.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(columns)
        # At the start no request is open, and there is no rate yet.
        table.writerow([0, *(0 if "open" in name else "" for name in list(columns)[1:])])
        table.writerows([round(value, 3) for value in row] for row in zip(*columns.values(), strict=False))


def main() -> int:
    """Measure, and print the metrics."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--client", required=True, choices=CLIENTS)
    parser.add_argument("--seconds", type=float, default=18.0)
    parser.add_argument("--settle", type=float, default=4.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))
    supplies = [Supply(name, args, cores[-index % len(cores)]) for index, name in enumerate(SUPPLIES)]
    threads = [threading.Thread(target=supply.run) for supply in supplies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures := [supply.failure for supply in supplies if supply.failure]:
        print("; ".join(failures), file=sys.stderr)
        return 1
    series(supplies, args.out / "series.csv")
    print(json.dumps({name: value for supply in supplies for name, value in supply.metrics().items()}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
