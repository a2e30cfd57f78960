"""Plays locustfiles with Locust and with weir against a recording service, and compares what the service got.

    python3 scripts/locust_equality.py --locust VENV/bin/locust --python VENV/bin/python FILE.py ...

Both programs play each file with three users for some seconds; waits between tasks are shortened to 10 ms and the host
is the recording service. The distinct requests are compared: method, target, body, and all headers but User-Agent and
Accept-Encoding, whose values name the client. Requests with random numbers are compared with their numbers left out.
The exit code is 1 if a file differs. Files of others are used in place.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

Request = tuple[str, str, tuple[tuple[str, str], ...], bytes]

CLIENT_HEADERS = {"user-agent", "accept-encoding"}
USERS = 3
START_S = 15

WRAPPER = """
import sys
_path = {path!r}
sys.path.insert(0, {folder!r})
__file__ = _path
exec(compile(open(_path).read(), _path, "exec"), globals())
for _one in list(globals().values()):
    if isinstance(_one, type) and "tasks" in dir(_one):
        if "wait_time" in dir(_one):
            _one.wait_time = lambda self: 0.01
        if "host" in dir(_one):
            _one.host = {host!r}
del _one
"""


@dataclass
class Service:
    """Service on the loopback interface that responds with what it got, and keeps it."""

    requests: list[Request] = field(default_factory=list)
    port: int = 0

    def start(self) -> None:
        """Listen on a free port, on a thread of its own."""
        ready = threading.Event()

        async def serve() -> None:
            server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
            self.port = server.sockets[0].getsockname()[1]
            ready.set()
            await server.serve_forever()

        threading.Thread(target=lambda: asyncio.run(serve()), daemon=True).start()
        ready.wait()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                line, *fields = head.decode("latin-1").strip().split("\r\n")
                pairs = [(name.lower(), value.strip()) for name, _, value in (one.partition(":") for one in fields)]
                length = int(dict(pairs).get("content-length", "0"))
                body = await reader.readexactly(length)
                method, target, _ = line.split(" ", 2)
                self.requests.append(recorded(method, target, pairs, body))
                writer.write(response_to(method, target, body))
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


def recorded(method: str, target: str, headers: list[tuple[str, str]], body: bytes) -> Request:
    """Return a request as it is compared."""
    kept = [(name, value) for name, value in headers if name not in CLIENT_HEADERS]
    boundary = next((found[1] for _, value in kept if (found := re.search(r"boundary=(\S+)", value))), None)
    if boundary:
        kept = [(name, value.replace(boundary, "BOUNDARY")) for name, value in kept if name != "content-length"]
        body = body.replace(boundary.encode(), b"BOUNDARY")
    return method, target, tuple(sorted(kept)), body


def response_to(method: str, target: str, body: bytes) -> bytes:
    """Respond with the request as JSON, and a cookie."""
    try:
        data = json.loads(body)
    except ValueError:
        data = None
    content = json.dumps({"method": method, "target": target, "data": data, "args": data, "token": "t-1"}).encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(content)}\r\n"
    head += "Set-Cookie: csrftoken=abc123; Path=/\r\n" if target.startswith("/login") else ""
    return head.encode() + b"\r\n" + (b"" if method == "HEAD" else content)


def played(command: list[str], service: Service, seconds: float) -> tuple[set[Request], str]:
    """Run a program for some seconds from its first request on; return the distinct requests, and what it printed."""
    service.requests = []
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    begun = time.monotonic()
    while not service.requests and process.poll() is None and time.monotonic() - begun < START_S:
        time.sleep(0.05)
    try:
        out, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)
    return set(service.requests), out


def without_numbers(requests: set[Request]) -> set[Request]:
    """Leave numbers out of requests, and their lengths with them."""
    return {
        (
            method,
            re.sub(r"[0-9a-f]{8,}|\d+", "#", target),
            tuple((name, re.sub(r"\d+", "#", value)) for name, value in headers),
            re.sub(rb"[0-9a-f-]{32,}|\d+", b"#", body),
        )
        for method, target, headers, body in requests
    }


def compared(locust: set[Request], weir: set[Request]) -> str:
    """Return in a word how two sets of requests differ."""
    if not locust and not weir:
        return "no request by either"
    if locust == weir:
        return "equal"
    if without_numbers(locust) == without_numbers(weir):
        return "equal but for numbers"
    return "DIFFERENT"


def main() -> int:
    """Compare all files of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--locust", required=True, help="program of Locust")
    parser.add_argument("--python", default=sys.executable, help="interpreter with weir and greenlet")
    parser.add_argument("--seconds", type=float, default=4.0, help="duration of each run")
    parser.add_argument("--verbose", action="store_true", help="print the requests that differ")
    given = parser.parse_args()
    service = Service()
    service.start()
    host = f"http://127.0.0.1:{service.port}"
    differing = 0
    for path in given.files:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / path.name
            file.write_text(WRAPPER.format(path=str(path.resolve()), folder=str(path.resolve().parent), host=host))
            run = ["--headless", "--only-summary", "-u", str(USERS), "-r", str(USERS), "-H", host]
            of_locust, out = played([given.locust, "-f", str(file), *run], service, given.seconds)
            start = "from weir import _script; _script.main()"
            run = ["load", "-s", str(file), host, "--users", str(USERS), "-d", f"{given.seconds}s"]
            of_weir, said = played([given.python, "-c", start, *run], service, given.seconds + 20)
        result = compared(of_locust, of_weir)
        differing += result == "DIFFERENT"
        print(f"{result:24} {path}  ({len(of_locust)} and {len(of_weir)} distinct requests)")
        if given.verbose and result in {"DIFFERENT", "no request by either"}:
            left, right = without_numbers(of_locust), without_numbers(of_weir)
            for mark, some in (("locust", left - right), ("weir", right - left)):
                for one in sorted(some)[:4]:
                    print(f"    {mark} alone: {one}")
            for mark, text in (("locust", out), ("weir", said)):
                print(f"    {mark} printed: {text.strip().splitlines()[-1:]}")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
