"""One measurement: the reference generator, its exchange, and a client between them. Twice at the same time.

    python trial.py --client NAME --seconds S --settle S --seed N --out FOLDER

- at the original *pace* a request is made every 10.5 ms on average, 95.2 in a second
- *flooded* it is every 7.5 ms, 133 in a second: more than the limits let through, so that the client sets the rate

Each has a core, an exchange and a client of its own. What was accepted and refused is what the exchange says; rates
count when `--settle` seconds are over, for at the start all windows are empty. The last line on stdout has the figures;
series.csv, in the folder, has how they went.
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

from generator import LONGEST_MS, requests
from jobs import READY, TTL_MS

HERE = Path(__file__).parent
SUPPLIES = {"pace": LONGEST_MS, "flooded": 15}
LOOK_S = 0.25
# A client that says nothing is ready by then; and the longest that one may take to end.
START_S, END_S = 0.5, 3.0
SEND = (
    "weir send - --url {url}/api/request?api_key={{key}}&nonce={{nonce}}&req_id={{id}} --ordered --limit 20/1s"
    f" --delay-bound 50ms --fresh --ttl {TTL_MS}ms --store {{folder}}/jobs.db --out {{out}} --quiet --format json"
)
CLIENTS = {
    "interval": "with_asyncio.py --limiter interval",
    "ring": "with_asyncio.py --limiter ring",
    "buffer": "with_asyncio.py --limiter buffer --dead-letters",
    "threads": "with_threads.py",
    "aiolimiter": "with_asyncio.py --limiter aiolimiter",
    "pyrate": "with_asyncio.py --limiter pyrate",
    "at-once": "with_asyncio.py --limiter ring --at-once",
    "weir-send": "",
    "AsyncSender": "with_weir.py --sender AsyncSender",
    "Sender": "with_weir.py --sender Sender",
}


@dataclass
class Look:
    """What was to be seen at a time."""

    at_s: float
    made: int
    accepted: int
    refused: int
    overtaken: int
    blocked_keys: int


@dataclass
class Supply:
    """One of the two: makes requests, hands them to a client, and watches."""

    name: str
    args: argparse.Namespace
    core: int
    made_at: list[float] = field(default_factory=list)
    looks: list[Look] = field(default_factory=list)
    results: list[dict[str, Any]] = field(default_factory=list)
    began: float = 0.0
    cpu_s: float = 0.0
    failure: str = ""

    def run(self) -> None:
        """Measure; what goes wrong is `failure`."""
        folder = self.args.out / self.name
        folder.mkdir(parents=True, exist_ok=True)
        try:
            with (
                exchange(self.args.seed, self.core) as url,
                client(self.args.client, url, folder, self.core) as process,
            ):
                self._feed(process, url)
            self.results = [json.loads(line) for line in (folder / "results.jsonl").read_text().splitlines()]
        except (OSError, ValueError, RuntimeError) as error:
            said = (folder / "client.log").read_text().strip().splitlines()[-1:]
            self.failure = f"{self.name}: {error}; {said}"

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
            # Without a key that may be used there is nothing left to do; what it cost is counted to the end.
            time.sleep(max(0.0, self.began + self.args.seconds - time.time()))
        over.set()
        watching.join()
        self.cpu_s = cpu_s(process.pid)

    def _watch(self, url: str, over: threading.Event) -> None:
        while True:
            last = over.wait(LOOK_S)
            said = ask(url)
            refused = said["refused"]
            keys = said["keys"].values()
            self.looks.append(
                Look(
                    time.time() - self.began,
                    len(self.made_at),
                    said["accepted"],
                    refused["exceeded"] + refused["blocked"],
                    refused["invalid_nonce"],
                    sum(key["blocked"] for key in keys),
                )
            )
            if last:
                return

    # --- What came of it

    def figures(self) -> dict[str, float]:
        """By name; those of the flood say so."""
        prefix = "" if self.name == "pace" else f"{self.name}_"
        return {f"{prefix}{name}": round(value, 3) for name, value in self._figures().items()}

    def _figures(self) -> dict[str, float]:
        last = self.looks[-1]
        settled = next((look for look in self.looks if look.at_s >= self.args.settle), last)
        over = self.began + last.at_s
        ended = [line for line in self.results if line["ended_ms"] / 1000 <= over]
        states = [line["state"] for line in ended]
        done = [line for line in ended if line["state"] == "done"]
        made = [self.made_at[int(line["id"])] * 1000 for line in done]
        took = sorted(line["ended_ms"] - at for line, at in zip(done, made, strict=True))
        late = sum(line["sent_ms"] - at > TTL_MS for line, at in zip(done, made, strict=True))
        open_ = [row[1] for row in self.opened()]
        blocked = next((look.at_s for look in self.looks if look.blocked_keys), None)
        figures = {
            "accepted_per_s": (last.accepted - settled.accepted) / max(last.at_s - settled.at_s, LOOK_S),
            "from_start_per_s": last.accepted / last.at_s,
            "made_per_s": last.made / last.at_s,
            "made": last.made,
            "accepted": last.accepted,
            "refused": last.refused,
            "overtaken": last.overtaken,
            "blocked_keys": last.blocked_keys,
            "expired": states.count("expired"),
            "graveyard": states.count("graveyard"),
            "late": late,
            "open_mean": mean(open_),
            "open_most": max(open_),
            "cpu_ms_per_accepted": 1000 * self.cpu_s / max(last.accepted, 1),
        }
        if blocked is not None:
            figures["blocked_at_ms"] = 1000 * blocked
        if took:
            figures |= {
                "response_mean_ms": mean(took),
                "response_p50_ms": took[len(took) // 2],
                "response_p99_ms": took[int(len(took) * 0.99)],
            }
        return figures

    def opened(self) -> Iterator[tuple[float, int]]:
        """How many were made and had come to no end, at the times of the looks."""
        ended = sorted(line["ended_ms"] / 1000 - self.began for line in self.results)
        at = 0
        for look in self.looks:
            while at < len(ended) and ended[at] <= look.at_s:
                at += 1
            yield look.at_s, look.made - at

    def accepted_lately(self) -> list[float]:
        """Per second, over the last second at each look."""
        back = round(1 / LOOK_S)
        rates = []
        for index, look in enumerate(self.looks):
            before = self.looks[index - back] if index >= back else Look(0.0, 0, 0, 0, 0, 0)
            rates.append((look.accepted - before.accepted) / (look.at_s - before.at_s))
        return rates


# --- Programs


def ask(url: str) -> dict[str, Any]:
    """What the exchange has counted."""
    with urllib.request.urlopen(f"{url}/stats", timeout=5) as answer:
        return dict(json.load(answer))


@contextmanager
def exchange(seed: int, core: int) -> Iterator[str]:
    """The original server; its address."""
    command = kept_to(core, ["weir", "serve", "exchange", "--seed", str(seed), "--quiet"])
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield json.loads(process.stdout.readline())["listening"]
        finally:
            process.terminate()


@contextmanager
def client(name: str, url: str, folder: Path, core: int) -> Iterator[subprocess.Popen[str]]:
    """A client that takes requests on its stdin."""
    keys = list(ask(url)["keys"])
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
            kept_to(core, command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
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


def kept_to(core: int, command: list[str]) -> list[str]:
    """The same on one core alone."""
    return ["taskset", "--cpu-list", str(core), *command]


def cpu_s(pid: int) -> float:
    """User and system time of a process so far."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return 0.0
    user, system = stat.rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def series(supplies: list[Supply], path: Path) -> None:
    """How it went, a line for each look."""
    columns: dict[str, list[float]] = {"seconds": [look.at_s for look in supplies[0].looks]}
    for supply in supplies:
        columns[f"open requests ({supply.name})"] = [float(count) for _, count in supply.opened()]
        columns[f"accepted per s ({supply.name})"] = supply.accepted_lately()
    with path.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(columns)
        # At the start nothing is open, and there is no rate yet.
        table.writerow([0, *(0 if "open" in name else "" for name in list(columns)[1:])])
        table.writerows([round(value, 3) for value in row] for row in zip(*columns.values(), strict=False))


def main() -> int:
    """Measure, and print the figures."""
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
    print(json.dumps({name: value for supply in supplies for name, value in supply.figures().items()}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
