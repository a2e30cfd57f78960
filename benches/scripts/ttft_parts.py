"""Parts of the time to first token between `weir llm` and `weir serve llm`, by the packets of the loopback.

    sudo python benches/scripts/ttft_parts.py WEIR [--streams 1000] [--ramp-up 100ms] [--decode 100ms] [--seconds 10]

The server's record begins when it reads a request, and ends when it hands a token over to be written; the client counts
from its send to the arrival of the token. The kernel's times of the packets stand between: what the client reports
beyond them is the client's, what they have beyond the record is the time that requests wait in the server's socket, and
that tokens wait to be written. Needs the permission to capture packets (CAP_NET_RAW).
"""

from __future__ import annotations

import argparse
import json
import socket
import struct
import subprocess
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

TCP, ETHERTYPE_IP, PACKET_HOST = 6, 0x0800, 0
SO_RCVBUFFORCE, SO_TIMESTAMPNS = 33, 35
SOL_PACKET, PACKET_STATISTICS = 263, 6
BUFFER_BYTES = 1 << 29
CAPTURED_BYTES = 128
QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99.9": 0.999}
#: Packet of a response that has its first token: the first one has the role.
TOKEN_PACKET = 2


@dataclass(order=True)
class Exchange:
    """A request and its first token, by the times of their packets on the monotonic clock, in nanoseconds."""

    request: int
    packets: int = field(default=0, compare=False)
    token: int | None = field(default=None, compare=False)


class Capture:
    """Packets with data from and to a port of the loopback, until it is closed."""

    def __init__(self, port: int) -> None:
        """Begin the capture."""
        self.port = port
        self.lost = 0
        self.found: list[tuple[int, int, bool, bool]] = []
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.ntohs(ETHERTYPE_IP))
        self._socket.bind(("lo", 0))
        self._socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER_BYTES)
        self._socket.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        self._socket.settimeout(0.5)
        self._offset = time.clock_gettime_ns(time.CLOCK_REALTIME) - time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._take)
        self._thread.start()

    def close(self) -> None:
        """End the capture, behind the packets that wait for it."""
        self._ended.set()
        self._thread.join()
        _, self.lost = struct.unpack("II", self._socket.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8))
        self._socket.close()

    def _take(self) -> None:
        while True:
            try:
                data, controls, _, address = self._socket.recvmsg(CAPTURED_BYTES, CAPTURED_BYTES)
            except TimeoutError:
                if self._ended.is_set():
                    return
                continue
            if address[2] != PACKET_HOST or len(data) < 40 or data[9] != TCP:
                continue
            head = (data[0] & 15) * 4
            source, target = struct.unpack_from(">HH", data, head)
            body = head + (data[head + 12] >> 4) * 4
            if self.port in (source, target) and struct.unpack_from(">H", data, 2)[0] > body:
                seconds, nanos = struct.unpack("qq", controls[0][2])
                at = seconds * 1_000_000_000 + nanos - self._offset
                is_request = data[body : body + 4] == b"POST"
                self.found.append((at, target if source == self.port else source, source == self.port, is_request))

    def exchanges(self) -> list[Exchange]:
        """Return the requests whose first token was seen, by time."""
        last: dict[int, Exchange] = {}
        found = []
        for at, client, is_response, is_request in sorted(self.found):
            if is_request:
                last[client] = Exchange(at)
                found.append(last[client])
            elif is_response and client in last:
                last[client].packets += 1
                if last[client].packets == TOKEN_PACKET:
                    last[client].token = at
        return sorted(one for one in found if one.token is not None)


def main() -> None:
    """Load a server, and print the parts in milliseconds."""
    args = _arguments()
    with tempfile.TemporaryDirectory(prefix="weir-ttft-") as folder:
        record = Path(folder) / "record"
        flags = ["--slots", "4096", "--batch-effect", "0%", "--prefill", "50ms", "--decode", args.decode]
        flags += ["--output-tokens", "48", "--record", str(record)]
        serve = [args.weir, "serve", "llm", "-q", "--port", "0", *flags]
        server = subprocess.Popen(["taskset", "-c", "0", *serve], stdout=subprocess.PIPE, text=True)
        try:
            url = json.loads(server.stdout.readline() if server.stdout else "")["listening"]
            capture = Capture(int(url.rsplit(":", 1)[1]))
            try:
                run = _load(args, url)
            finally:
                capture.close()
        finally:
            server.terminate()
            server.wait()
        records = [json.loads(line) for line in record.read_text("utf-8").splitlines()]
    _print(run, sorted((r for r in records if r["end"] == "complete"), key=_began), capture)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Parts of the time to first token.")
    parser.add_argument("weir", help="the command")
    parser.add_argument("--streams", type=int, default=1000, help="streams at the same time [%(default)s]")
    parser.add_argument("--ramp-up", default="100ms", help="time over which they begin [%(default)s]")
    parser.add_argument("--decode", default="100ms", help="time of a token [%(default)s]")
    parser.add_argument("--seconds", type=int, default=10, help="duration [%(default)s]")
    return parser.parse_args()


def _load(args: argparse.Namespace, url: str) -> dict[str, Any]:
    flags = ["--model", "weir-llm", "-c", str(args.streams), "--ramp-up", args.ramp_up, "-d", f"{args.seconds}s"]
    tokens = ["--input-tokens", "8", "--output-tokens", "48", "--format", "json", "-t", "1"]
    command = ["taskset", "-c", "1", args.weir, "llm", url, *flags, *tokens]
    finished = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    run: dict[str, Any] = json.loads(finished.stdout)
    return run


def _began(record: dict[str, Any]) -> int:
    return int(record["began_ns"])


def _print(run: dict[str, Any], records: list[dict[str, Any]], capture: Capture) -> None:
    exchanges = capture.exchanges()
    llm = run["llm"]
    reported = llm["ttft_service_ms"]
    print(f"{'ms':<44}" + "".join(f"{name:>9}" for name in QUANTILES))
    named = [reported[name.replace(".", "")] for name in QUANTILES]
    print(f"{'client: send to arrival, as reported':<44}" + "".join(f"{time:9.3f}" for time in named))
    tokens = sorted(one.token for one in exchanges if one.token is not None)
    given = sorted(_began(record) + record["ttft_ns"] for record in records)
    # Both are in the order of time: the server reads requests, and writes tokens, in turn.
    rows = {
        "packets: request to first token": [(one.token or 0) - one.request for one in exchanges],
        "record: read to handed over": [record["ttft_ns"] for record in records],
        "of the packets, in the server's socket": [
            _began(record) - one.request for record, one in zip(records, exchanges, strict=False)
        ],
        "of the packets, from handed over to written": [b - a for a, b in zip(given, tokens, strict=False)],
    }
    for name, times in rows.items():
        print(f"{name:<44}" + "".join(f"{_quantile(times, q) / 1e6:9.3f}" for q in QUANTILES.values()))
    print(
        f"{len(exchanges)} exchanges, {len(records)} records, {llm['requests']} responses, {capture.lost} packets lost"
    )


def _quantile(times: list[int], quantile: float) -> float:
    ordered = sorted(times)
    return ordered[min(int(quantile * len(ordered)), len(ordered) - 1)] if ordered else float("nan")


if __name__ == "__main__":
    main()
