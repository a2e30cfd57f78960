"""Plays Lua scripts with wrk and with weir against a recording service, and compares what the service got.

    python3 scripts/wrk_equality.py --weir target/debug/weir /usr/share/doc/wrk/examples/scripts

Each script of the folder is played by both programs with one connection, where the sequence of requests is compared,
and with several, where the distinct requests are: those of the program that made fewer are among those of the other.
Where a script has `delay`, the median pause between two requests of a connection is compared. What a script prints is
compared with its numbers left out. The exit code is 1 if a script differs. Scripts of others are used in place.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from statistics import median

Request = tuple[str, tuple[tuple[str, str], ...], bytes]

# Lines of wrk's own report, which both programs print.
REPORT = re.compile(
    r"Running .* test @|\d+ threads and \d+ connections|Thread Stats|Latency |Req/Sec|requests in .* read"
    r"|Socket errors|Non-2xx|Requests/sec|Transfer/sec|Latency Distribution|^ *\d+(\.\d+)?% "
)


#: Pauses below are the noise of the machine.
MIN_PAUSE_S = 0.005


@dataclass
class Record:
    """What a service got: requests of each connection, and when they came."""

    requests: dict[int, list[Request]] = field(default_factory=dict)
    times: dict[int, list[float]] = field(default_factory=dict)

    def add(self, connection: int, request: Request) -> None:
        """Take a request of a connection."""
        self.requests.setdefault(connection, []).append(request)
        self.times.setdefault(connection, []).append(time.monotonic())

    def count(self) -> int:
        """Count all requests."""
        return sum(map(len, self.requests.values()))

    def distinct(self) -> Counter[Request]:
        """Count each distinct request."""
        return Counter(request for requests in self.requests.values() for request in requests)

    def sequence(self) -> list[Request]:
        """Return the requests of all connections in the order of the connections."""
        return [request for number in sorted(self.requests) for request in self.requests[number]]

    def pause_s(self) -> float:
        """Return the median time between two requests of a connection."""
        gaps = [later - earlier for times in self.times.values() for earlier, later in pairwise(times)]
        return median(gaps) if gaps else 0.0


class Service(asyncio.Protocol):
    """Connection of the recording service."""

    record = Record()
    connections = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Number the connection."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        Service.connections += 1
        self.number = Service.connections
        self.pending = b""

    def data_received(self, data: bytes) -> None:
        """Respond to each whole request."""
        self.pending += data
        while (parsed := self.parse()) is not None:
            request, close = parsed
            Service.record.add(self.number, request)
            self.transport.write(response(request))
            if close:
                self.transport.close()

    def parse(self) -> tuple[Request, bool] | None:
        """Take the next whole request, and whether its connection ends with it."""
        head, end, rest = self.pending.partition(b"\r\n\r\n")
        if not end:
            return None
        line, *lines = head.decode("latin-1").split("\r\n")
        headers = tuple(
            sorted((name.lower(), value.strip()) for name, _, value in (text.partition(":") for text in lines))
        )
        length = int(dict(headers).get("content-length", "0"))
        if len(rest) < length:
            return None
        self.pending = rest[length:]
        return (line, headers, rest[:length]), dict(headers).get("connection", "").lower() == "close"


def response(request: Request) -> bytes:
    """Make a response with a token for those that ask for one."""
    line, _, _ = request
    token = "X-Token: token-1\r\n" if "auth" in line or "login" in line else ""
    body = b"" if line.startswith("HEAD ") else b'{"token": "token-1", "id": 7}'
    return f"HTTP/1.1 200 OK\r\n{token}Content-Type: application/json\r\nContent-Length: 29\r\n\r\n".encode() + body


def serve() -> int:
    """Start the service; return its port."""
    ready = threading.Event()
    port = 0

    async def run() -> None:
        nonlocal port
        server = await asyncio.get_running_loop().create_server(Service, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        ready.set()
        await server.serve_forever()

    threading.Thread(target=lambda: asyncio.run(run()), daemon=True).start()
    ready.wait()
    return port


@dataclass
class Played:
    """One program's run of a script."""

    record: Record
    printed: list[str]
    code: int
    errors: str


def play(command: list[str], folder: Path) -> Played:
    """Run a program with a script."""
    Service.record = Record()
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    # The last requests are read before the next program starts.
    time.sleep(0.2)
    lines = [line.strip() for line in done.stdout.splitlines() if line.strip() and not REPORT.search(line)]
    numberless = sorted({re.sub(r"\d+(\.\d+)?", "N", line) for line in lines})
    return Played(Service.record, numberless, done.returncode, done.stderr.strip())


def differences(text: str, wrk: Played, weir: Played, is_single: bool) -> list[str]:
    """Return what is different about two runs, a line each."""
    found = []
    if wrk.record.count() == 0 or weir.record.count() == 0:
        return [f"{wrk.record.count()} requests by wrk, {weir.record.count()} by weir: {weir.errors or wrk.errors}"]
    if is_single:
        pairs = list(zip(wrk.record.sequence(), weir.record.sequence(), strict=False))
        wrong = next(((at, a, b) for at, (a, b) in enumerate(pairs) if a != b), None)
        if wrong:
            found.append(f"request {wrong[0]}: {show(wrong[1])} by wrk, {show(wrong[2])} by weir")
    else:
        fewer, more = sorted([wrk.record.distinct(), weir.record.distinct()], key=len)
        # The last request of each of the connections may have been the last one of all.
        extra = [request for request in fewer if request not in more]
        if extra:
            found.append(f"{len(extra)} distinct requests of one program alone, e.g. {show(extra[0])}")
    if re.search(r"\bdelay\s*=|function\s+delay", text):
        pauses = wrk.record.pause_s(), weir.record.pause_s()
        if min(pauses) < 0.7 * max(pauses) and max(pauses) > MIN_PAUSE_S:
            found.append(f"pause {pauses[0] * 1e3:.1f} ms by wrk, {pauses[1] * 1e3:.1f} ms by weir")
    if wrk.printed != weir.printed:
        found.append(f"printed {wrk.printed} by wrk, {weir.printed} by weir")
    if weir.code not in (0, 3):
        found.append(f"weir ended with {weir.code}: {weir.errors}")
    return found


def show(request: Request) -> str:
    """Write a request in one line."""
    line, headers, body = request
    return f"{line!r} {dict(headers)} {body[:60]!r}"


def main() -> int:
    """Compare each script of the folder."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--weir", default="target/debug/weir", help="path of weir")
    parser.add_argument("--wrk", default="wrk", help="path of wrk")
    parser.add_argument("--duration", type=int, default=1, help="duration of each run, in seconds")
    parser.add_argument("--args", nargs="*", default=[], help="arguments of the scripts, after --")
    parser.add_argument("--path", default="/", help="path of the URL")
    parser.add_argument("folder", type=Path, help="folder with .lua files")
    asked = parser.parse_args()
    weir = str(Path(asked.weir).resolve())
    url = f"http://127.0.0.1:{serve()}{asked.path}"
    rest = [url, "--", *asked.args] if asked.args else [url]
    bad = 0
    scripts = sorted(asked.folder.resolve().glob("*.lua"))
    for script in scripts:
        text = script.read_text(errors="replace")
        lines = []
        counts = []
        for threads, connections in [(1, 1), (2, 4)]:
            load = ["-t", str(threads), "-c", str(connections), "-d", f"{asked.duration}s", "-s", str(script)]
            by_wrk = play([asked.wrk, *load, *rest], script.parent)
            by_weir = play([weir, "load", "-q", "-f", "wrk", *load, *rest], script.parent)
            counts.append(f"{by_wrk.record.count()}/{by_weir.record.count()}")
            lines += differences(text, by_wrk, by_weir, connections == 1)
        bad += bool(lines)
        print(
            f"{script.name:<32} {'differs' if lines else 'same':<8} requests wrk/weir {', '.join(counts)}", flush=True
        )
        for line in lines:
            print(f"    {line}", flush=True)
    print(f"{len(scripts) - bad} of {len(scripts)} scripts are the same")
    return 1 if bad or not scripts else 0


if __name__ == "__main__":
    sys.exit(main())
