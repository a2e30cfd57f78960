"""One measurement: a load test of the original report on one server, which stands before an unreliable service.

    python trial.py --server gathered|greedy|shared|gate --test 1..6 --seed N --out FOLDER [--part P] [--most-users N]

The server has a core of its own; the service, `weir serve work`, shares the other with the load. The original server
asks it over TLS, as it did; the gate does not. `--part` is how much of the original ramp-up there is, and no call
begins later than `--seconds` after the last user. The last line on stdout has the columns of JMeter's Summary Report,
what share of answers was valid and in time, and how often each of the original cases came.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import socket
import statistics
import subprocess
import sys
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

HERE = Path(__file__).parent
TIMEOUT_MS, PATIENCE_MS = 1000, 300
# The original allows itself 10 to 30 ms more.
IN_TIME_MS = TIMEOUT_MS + 30
# Users, the time over which they start, and calls of each.
TESTS = json.loads((HERE / "tests.json").read_text())
# Of 11 requests to the service 8 are good and take 100 to 600 ms, as the 2 do that fail early; 1 hangs. A call has
# three, and all that do not hang are answered by 300 + 600 ms.
GOOD, EARLY, HANGING, SOON = 8 / 11, 2 / 11, 1 / 11, 200 / 500
CALCULATED = {
    "one_attempt": GOOD,
    "valid": 1 - (1 - GOOD) ** 3,
    "case_1": GOOD * SOON,
    "case_2": EARLY * SOON,
    "case_3": 1 - (GOOD + EARLY) * SOON,
    "case_4": (EARLY + HANGING) ** 3 - EARLY**3,
}
ERROR = len('{"message":"ERROR"}')


@dataclass(frozen=True)
class Sample:
    """A line of JMeter's log."""

    at_ms: int
    took_ms: int
    code: str
    received: int
    sent: int


def main() -> int:
    """Measure, and print the figures."""
    args = _arguments()
    cores = sorted(os.sched_getaffinity(0))
    with ExitStack() as stack:
        _, work = stack.enter_context(_listening(["weir", "serve", "work", "--seed", str(args.seed)], cores[-1]))
        front = work
        if args.server != "gate":
            tls = [sys.executable, str(HERE / "tls.py"), "--to", work.rpartition(":")[2], "--folder", str(args.out)]
            _, front = stack.enter_context(_listening(tls, cores[-1]))
        server = Server(args.server, f"{front}/api/work", args.out, cores[0], stack)
        head = 0 if server.is_gate else server.head_bytes()
        before_s = server.cpu_s()
        samples = _drive(server.url, args, cores[-1])
        cpu_s, peak_mib = server.cpu_s() - before_s, server.peak_mib()
        asked = _ask(f"{work}/stats")["requests"]
        counts = server.counts()
    valid = [_is_valid(sample, server.is_gate, head) for sample in samples]
    if sum(valid) != counts["success"]:
        print(f"{sum(valid)} answers look valid, and the server has made {counts['success']}", file=sys.stderr)
        return 1
    figures = _figures(samples, valid, counts) | _cost(len(samples), cpu_s, peak_mib, asked)
    calculated = {f"calculated_{name}_share": share for name, share in CALCULATED.items()}
    print(json.dumps(_asked(args) | figures | calculated))
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--server", required=True, choices=["gathered", "greedy", "shared", "gate"])
    parser.add_argument("--test", type=int, required=True, choices=range(1, len(TESTS) + 1))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--part", type=float, default=0.2)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--most-users", type=int, default=1000)
    parser.add_argument("--out", type=Path, required=True)
    return parser.parse_args()


# --- The load


def _asked(args: argparse.Namespace) -> dict[str, float]:
    """The part of the test that is driven."""
    test = TESTS[args.test - 1]
    ramp_up_s = test["ramp_up_s"] * (args.part if test["ramp_up_s"] > 1 else 1)
    # One user makes few calls in the time that is enough for many.
    seconds = args.seconds * (2 if test["users"] == 1 else 1)
    return {
        "users": min(test["users"], args.most_users),
        "ramp_up_s": ramp_up_s,
        "loops": test["loops"],
        "begin_s": ramp_up_s + seconds,
    }


def _drive(url: str, args: argparse.Namespace, core: int) -> list[Sample]:
    asked = _asked(args)
    log = args.out / "samples.jtl"
    command = ["weir", "load", f"{url}/api/smart/{TIMEOUT_MS}", "--quiet", "--jtl", str(log), "-t", "1"]
    command += ["--users", str(asked["users"]), "--ramp-up", f"{asked['ramp_up_s']}s", "--loops", str(asked["loops"])]
    command += ["--duration", f"{asked['begin_s']}s", "--timeout", "120s", "--seed", str(args.seed)]
    subprocess.run(_kept_to(core, command), check=True, stdout=subprocess.DEVNULL)
    with log.open(newline="") as file:
        rows = list(csv.DictReader(file))
    return [
        Sample(
            int(row["timeStamp"]), int(row["elapsed"]), row["responseCode"], int(row["bytes"]), int(row["sentBytes"])
        )
        for row in rows
    ]


def _is_valid(sample: Sample, is_gate: bool, head: int) -> bool:
    """The gate says it by its status; the original server by its body, whose length tells which it is."""
    return sample.code == "200" and (is_gate or sample.received - head > ERROR)


# --- The server


class Server:
    """One of the four, and what it says of itself."""

    def __init__(self, name: str, work: str, out: Path, core: int, stack: ExitStack) -> None:
        """Starts it."""
        self.is_gate = name == "gate"
        self._log = out / "access.jsonl"
        if self.is_gate:
            self._log.unlink(missing_ok=True)
            command = ["weir", "gate", "--smart", work, "--listen", "0", "--access-log", str(self._log)]
            self._process, self.url = stack.enter_context(_listening(command, core))
            return
        command = [sys.executable, str(HERE / "server.py"), "--form", name, "--work", work, "--ca", str(out / "ca.pem")]
        # With many users its connections break by the hundred, a dozen lines each.
        said = stack.enter_context((out / "server.log").open("w"))
        self._process, self.url = stack.enter_context(_listening(command, core, said))

    def head_bytes(self) -> int:
        """How long the head of an answer is; all of its answers have the same one."""
        host, port = self.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port))) as connection:
            request = f"GET /api/smart/none HTTP/1.1\r\nhost: {host}\r\n\r\n"
            connection.sendall(request.encode())
            connection.settimeout(20)
            answer = b""
            while not answer.endswith(b"}"):
                answer += connection.recv(4096)
        return answer.index(b"\r\n\r\n") + 4

    def counts(self) -> Counter[str]:
        """Successes, errors and the original cases. The gate is told to end: its log is whole then."""
        if not self.is_gate:
            return Counter(_ask(f"{self.url}/counts"))
        self._process.terminate()
        self._process.wait(20)
        return self._told()

    def _told(self) -> Counter[str]:
        counts: Counter[str] = Counter()
        for line in self._log.read_text().splitlines():
            call = json.loads(line)
            story = call.get("story")
            if not story:
                continue
            if "refused" in story[0]:
                counts["refused"] += 1
                continue
            if len(story) > 1:
                counts["case 2" if story[1]["why"] == "failure" else "case 3"] += 1
            else:
                # A call that may have no second attempt has one of 300 ms and more.
                counts["case 1" if call["status"] == 200 and story[0]["ended_ms"] <= PATIENCE_MS else "case 3"] += 1
            counts["success" if call["status"] == 200 else "error"] += 1
            counts["case 4"] += call["status"] == 504
        return counts

    def cpu_s(self) -> float:
        """User and system time so far."""
        stat = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK")

    def peak_mib(self) -> float:
        """The most memory that was resident."""
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        return next(int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmHWM"))


@contextmanager
def _listening(
    command: list[str], core: int, said: IO[str] | None = None
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A program that says where it listens, and its address."""
    with subprocess.Popen(_kept_to(core, command), stdout=subprocess.PIPE, stderr=said, text=True) as process:
        try:
            assert process.stdout is not None
            yield process, json.loads(process.stdout.readline())["listening"]
        finally:
            process.kill()


def _kept_to(core: int, command: list[str]) -> list[str]:
    return ["taskset", "--cpu-list", str(core), *command]


def _ask(url: str) -> dict[str, Any]:
    with urllib.request.urlopen(url, timeout=60) as answer:
        return dict(json.load(answer))


# --- What came of it


def _figures(samples: list[Sample], valid: list[bool], counts: Counter[str]) -> dict[str, float]:
    took = [sample.took_ms for sample in samples]
    calls = len(samples)
    last_ms = max(sample.at_ms + sample.took_ms for sample in samples)
    seconds = (last_ms - min(sample.at_ms for sample in samples)) / 1000
    received, sent = (sum(getattr(sample, name) for sample in samples) for name in ("received", "sent"))
    in_time = [sample.took_ms <= IN_TIME_MS and sample.code.isdecimal() for sample in samples]
    figures = {
        "samples": calls,
        "average_ms": statistics.fmean(took),
        "min_ms": min(took),
        "max_ms": max(took),
        "sd_ms": statistics.pstdev(took),
        # JMeter's error: no answer, or a status of 400 and more.
        "error_share": sum(not (sample.code.isdecimal() and int(sample.code) < 400) for sample in samples) / calls,
        "per_s": calls / seconds,
        "received_kib_per_s": received / 1024 / seconds,
        "sent_kib_per_s": sent / 1024 / seconds,
        "bytes": received / calls,
        "valid_share": sum(valid) / calls,
        "in_time_share": sum(in_time) / calls,
        "valid_in_time_share": sum(good and soon for good, soon in zip(valid, in_time, strict=True)) / calls,
        "lost": sum(not sample.code.isdecimal() for sample in samples),
        "refused_share": counts["refused"] / calls,
        "timeout_ms": TIMEOUT_MS,
        "in_time_ms": IN_TIME_MS,
    }
    return figures | {f"case_{case}_share": counts[f"case {case}"] / calls for case in range(1, 5)}


def _cost(calls: int, cpu_s: float, peak_mib: float, asked: int) -> dict[str, float]:
    return {"cpu_ms_per_call": 1000 * cpu_s / calls, "peak_mib": peak_mib, "attempts_per_call": asked / calls}


if __name__ == "__main__":
    sys.exit(main())
