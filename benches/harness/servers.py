"""The targets: nginx and the lean server, each started for a section and stopped after it."""

from __future__ import annotations

import http.client
import json
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from harness.process import environment, pinned

START_LIMIT_S = 10.0
BODY = "The river does not wait for the dam."  # and a line end: 38 bytes


class Server:
    """A running target on 127.0.0.1."""

    #: Requests of ours that the server counts between two calls of `requests`.
    own_requests = 0

    def __init__(self, name: str, port: int, process: subprocess.Popen[str]) -> None:
        """A server that answers already."""
        self.name = name
        self.port = port
        self.process = process

    @property
    def url(self) -> str:
        """Where requests go."""
        return f"http://127.0.0.1:{self.port}/"

    def get(self, path: str) -> str:
        """The body at `path`."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request("GET", path)
            return connection.getresponse().read().decode()
        finally:
            connection.close()

    def requests(self) -> int:
        """How many requests the server has counted."""
        raise NotImplementedError

    def reset(self) -> None:
        """Forget what was counted, where the server can."""

    def stop(self) -> None:
        """End the server and wait for it."""
        self.process.send_signal(signal.SIGCONT)
        self.process.terminate()
        try:
            self.process.wait(timeout=START_LIMIT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        if self.process.stdout:
            self.process.stdout.close()


class Lean(Server):
    """Our own server; what it counts and notes is the truth of the benchmarks."""

    def stats(self) -> dict[str, Any]:
        """Requests, and in delay mode the delays really applied."""
        return dict(json.loads(self.get("/_stats")))

    def arrivals(self, rate_per_s: float) -> dict[str, Any]:
        """How evenly the requests came."""
        return dict(json.loads(self.get(f"/_arrivals?rate={rate_per_s}")))

    def requests(self) -> int:
        """Requests served since the start or the last reset."""
        return int(self.stats()["requests"])

    def reset(self) -> None:
        """Start all counts afresh; the next request is the first again."""
        self.get("/_reset")


class Nginx(Server):
    """nginx with one worker that returns a constant."""

    own_requests = 1

    def requests(self) -> int:
        """The third number of stub_status, which counts this request too."""
        return int(self.get("/_status").splitlines()[2].split()[2])


@contextmanager
def lean(program: Path, core: int, *flags: str) -> Iterator[Lean]:
    """The lean server with these flags, on a free port."""
    command = pinned([str(program), "--port", "0", *flags], core)
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment())
    line = process.stdout.readline() if process.stdout else ""
    if not line:
        process.wait()
        raise RuntimeError(f"the lean server did not start: {' '.join(flags)}")
    server = Lean("lean", int(json.loads(line)["listening"].rsplit(":", 1)[1]), process)
    try:
        yield server
    finally:
        server.stop()


@contextmanager
def nginx(program: Path, core: int) -> Iterator[Nginx]:
    """Nginx with a configuration of its own, on a free port."""
    with tempfile.TemporaryDirectory(prefix="weir-nginx-") as folder:
        port = _free_port()
        config = Path(folder) / "nginx.conf"
        config.write_text(_nginx_config(Path(folder), port))
        command = [str(program), "-p", folder, "-c", str(config), "-e", f"{folder}/error.log"]
        process = subprocess.Popen(pinned(command, core), text=True, env=environment())
        server = Nginx("nginx", port, process)
        try:
            _await_port(server)
            yield server
        finally:
            server.stop()


def _nginx_config(folder: Path, port: int) -> str:
    temporary = "\n".join(
        f"    {kind}_temp_path {folder}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    return f"""
daemon off;
worker_processes 1;
worker_rlimit_nofile 20000;
pid {folder}/nginx.pid;
events {{ worker_connections 16384; }}
http {{
{temporary}
    access_log off;
    keepalive_requests 1000000000;
    keepalive_timeout 1h;
    server {{
        listen 127.0.0.1:{port} backlog=4096;
        location = /_status {{ stub_status; }}
        location / {{ default_type text/plain; return 200 "{BODY}\\r\\n"; }}
    }}
}}
"""


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _await_port(server: Server) -> None:
    deadline = time.monotonic() + START_LIMIT_S
    while True:
        try:
            server.get("/_status")
            return
        except OSError:
            if server.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{server.name} did not start") from None
            time.sleep(0.02)


@contextmanager
def stopping(server: Server, stopped_s: float, period_s: float) -> Iterator[None]:
    """Stop the server's process for the last part of every period, counted from now."""
    done = threading.Event()

    def cycle() -> None:
        start, periods = time.monotonic(), 0
        while True:
            for offset, sign in ((period_s - stopped_s, signal.SIGSTOP), (period_s, signal.SIGCONT)):
                if done.wait(start + periods * period_s + offset - time.monotonic()):
                    return
                server.process.send_signal(sign)
            periods += 1

    thread = threading.Thread(target=cycle)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        server.process.send_signal(signal.SIGCONT)
